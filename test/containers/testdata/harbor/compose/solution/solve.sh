echo "$COLOUR" > colour.txt
