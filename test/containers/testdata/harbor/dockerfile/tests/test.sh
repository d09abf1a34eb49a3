#!/bin/bash
echo "as $(id -un) in $PWD with the key $API_KEY"
reward=0
[ "$(cat hello.txt)" = "$WANT" ] && [ "$(cat who.txt)" = "agent world" ] && [ "$(id -un) $PWD" = "root /srv/work" ] &&
	[ "$(cat /tmp/ready)" = "sh -c sleep infinity" ] && [ "$(cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' ')" = lo ] &&
	[ -s /logs/artifacts/note ] && [ -d /logs/agent ] && [ "$HOME" = /root ] && reward=1
echo $reward > /logs/verifier/reward.txt
exit 7 # which means nothing
