[ -e /tmp/left-by-solution ] && echo "$DONE" > second.txt
