#!/bin/bash
text=0 count=0
[ "$(cat output.txt)" = seven ] && text=1
[ "$(cat count.txt)" = 5 ] && count=1
echo "{\"text\": $text, \"count\": $count}" > /logs/verifier/reward.json
echo $((text * count)) > /logs/verifier/reward.txt
