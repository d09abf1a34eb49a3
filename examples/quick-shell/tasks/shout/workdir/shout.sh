#!/bin/sh
# shout.sh TEXT: turns its argument into capitals.
echo "$1" | tr A-Z a-z
