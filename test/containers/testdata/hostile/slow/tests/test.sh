#!/bin/bash
echo 1 > /logs/verifier/reward.txt # whatever the agent came to in its time
