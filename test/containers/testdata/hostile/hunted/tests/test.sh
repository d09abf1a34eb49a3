#!/bin/bash
# It waits for the program that kills it, as long as that lives.
if [ "$(cat answer.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
while ps -e -o args | grep -q '[/]tmp/behind'; do sleep 0.05; done
