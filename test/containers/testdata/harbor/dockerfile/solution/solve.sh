#!/bin/bash
echo "$TEXT" > hello.txt
echo "$(id -un) $PLACE" > who.txt
echo done > /logs/agent/log
echo noted > /logs/artifacts/note
