#!/bin/sh
# percent.sh PART WHOLE: prints which percentage of the second number the first one is, rounded down.
echo $(($1 * 10 / $2))
