#!/bin/sh
# Starts the service and waits until it answers.
set -eu
node "$HOOKS_DIR/service.mjs" &
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  if node "$HOOKS_DIR/probe.mjs"; then exit 0; fi
  sleep 0.1
done
echo "the service does not answer on port $PORT" >&2
exit 1
