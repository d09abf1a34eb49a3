#!/bin/bash
[ -e /logs/verifier/reward.json ] && exit 1
if [ "$(cat answer.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
sleep 0.3
