#!/bin/sh
# Greets whoever is named, or the world.
printf 'hello, %s\n' "${1:-world}"
