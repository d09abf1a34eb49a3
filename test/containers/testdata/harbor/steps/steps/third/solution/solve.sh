echo "$DONE" > third.txt
