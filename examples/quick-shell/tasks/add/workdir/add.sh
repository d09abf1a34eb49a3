#!/bin/sh
# add.sh A B: adds two numbers.
echo $(($1 - $2))
