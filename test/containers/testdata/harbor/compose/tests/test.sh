#!/bin/bash
if [ "$(cat colour.txt)" = blue ] && [ "$TEST_DIR" = /tests ] && [ "$PORT_NUMBER" = 8080 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
