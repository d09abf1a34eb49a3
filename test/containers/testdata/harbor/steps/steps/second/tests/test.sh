#!/bin/bash
. /tests/check.sh
[ -e /tests/left-by-first ] && exit 1
[ -e /logs/verifier/reward.json ] && exit 1
r=$(reward "$(cat second.txt) $WORD $(cat given.txt) $(stat -c %U second.txt)" "done own second agent" second)
echo "{\"reward\": $r, \"style\": $r}" > /logs/verifier/reward.json
