#!/bin/bash
if [ "$(bash ./work.sh)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
