#!/bin/sh
# even.sh N: prints yes for an even number and no for an odd one.
if [ $(($1 % 2)) -eq 1 ]; then echo yes; else echo no; fi
