echo "$DONE" > first.txt; touch /tmp/left-by-solution
