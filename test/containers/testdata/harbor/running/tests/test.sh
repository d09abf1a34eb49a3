#!/bin/bash
touch /tmp/question
reward=0
for i in $(seq 10); do [ -s /tmp/answers ] && reward=1 && break; sleep 0.1; done
echo $reward > /logs/verifier/reward.txt
