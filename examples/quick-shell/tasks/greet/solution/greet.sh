#!/bin/sh
# greet.sh NAME: greets the person it is given.
echo "Hello, $1!"
