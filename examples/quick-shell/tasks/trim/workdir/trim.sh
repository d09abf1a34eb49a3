#!/bin/sh
# trim.sh TEXT: removes blanks at both ends of its argument.
printf '%s\n' "$1" | sed 's/^ *//'
