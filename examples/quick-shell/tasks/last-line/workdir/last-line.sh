#!/bin/sh
# last-line.sh TEXT: prints the last line of its argument.
printf "%s\n" "$1" | head -n 1
