#!/bin/bash
. /tests/check.sh
r=$(reward "$(cat third.txt first.txt)" "done
done" third)
echo "{\"reward\": $r, \"style\": $r}" > /logs/verifier/reward.json
