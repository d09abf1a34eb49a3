#!/bin/bash
if [ "$(cat /app/answer.txt)" = yes ] && [ ! -e /app/Dockerfile ]; then echo 1.0; else echo 0.0; fi > /logs/verifier/reward.txt
