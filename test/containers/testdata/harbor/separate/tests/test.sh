#!/bin/bash
find /logs /data /srv -type f
reward=0
[ "$(cat /logs/artifacts/state.txt)" = ready ] && [ "$(cat /srv/result.txt)" = result ] &&
	[ "$(cat /data/numbers/one)" = 1 ] && [ ! -e /data/numbers/two.tmp ] && [ ! -e /data/cache ] &&
	[ ! -e /var/state.txt ] && [ ! -e /app/answer.txt ] && [ "$(id -un)" = agent ] && reward=1
echo $reward > /logs/verifier/reward.txt
