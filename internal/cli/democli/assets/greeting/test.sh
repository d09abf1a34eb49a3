#!/bin/sh
# The project's own test.
got=$(sh ./greet.sh Ada)
if [ "$got" = "Hello, Ada!" ]; then
  echo "ok: $got"
else
  echo "FAIL: want \"Hello, Ada!\", got \"$got\""
  exit 1
fi
