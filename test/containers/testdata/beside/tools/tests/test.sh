#!/bin/bash
[ "$(cat /app/answer.txt)" = forty-two ]
echo "$((1 - $?))" > /logs/verifier/reward.txt
