#!/bin/bash
. /tests/check.sh
touch /tests/left-by-first
r=$(reward "$(cat first.txt) $WORD $(cat given.txt)" "done shared first" first)
echo "{\"reward\": $r, \"style\": $r}" > /logs/verifier/reward.json
