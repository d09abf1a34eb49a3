#!/bin/bash
if [ -s half.txt ]; then echo 0.5; else echo 0; fi > /logs/verifier/reward.txt
