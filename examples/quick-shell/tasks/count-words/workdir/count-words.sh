#!/bin/sh
# count-words.sh TEXT: prints the number of words of its argument.
echo "$1" | wc -c | tr -d " "
