#!/bin/bash
ln -s /etc/passwd /logs/verifier/reward.txt
