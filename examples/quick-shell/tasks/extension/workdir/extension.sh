#!/bin/sh
# extension.sh FILE: prints the part of a file name after its last dot.
echo "${1#*.}"
