#!/bin/bash
touch /tmp/question
reward=0
# Without a promise nobody is waited for.
for i in $(seq 600); do [ -e /tmp/promised ] || break; [ -s /tmp/answers ] && reward=1 && break; sleep 0.1; done
echo $reward > /logs/verifier/reward.txt
