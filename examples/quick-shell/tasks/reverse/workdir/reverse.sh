#!/bin/sh
# reverse.sh WORD...: prints its arguments in reverse order.
out=; for w in "$@"; do out="$out $w"; done; echo $out
