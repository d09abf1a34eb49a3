#!/bin/sh
# repeat.sh TEXT TIMES: prints its first argument as often as the second one says, on one line.
i=0; out=; while [ $i -lt "$2" ]; do out="$out$1"; i=$((i+1)); done; echo "$out"
