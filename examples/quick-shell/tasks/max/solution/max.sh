#!/bin/sh
# max.sh A B: prints the larger of two numbers.
if [ "$1" -gt "$2" ]; then echo "$1"; else echo "$2"; fi
