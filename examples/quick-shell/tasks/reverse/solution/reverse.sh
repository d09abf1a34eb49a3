#!/bin/sh
# reverse.sh WORD...: prints its arguments in reverse order.
out=; for w in "$@"; do out="$w $out"; done; echo $out
