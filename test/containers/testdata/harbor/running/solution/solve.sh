touch /tmp/promised
setsid bash -c 'until [ -e /tmp/question ]; do sleep 0.05; done; echo yes > /tmp/answers; sleep 1000' > /dev/null 2>&1 < /dev/null &
