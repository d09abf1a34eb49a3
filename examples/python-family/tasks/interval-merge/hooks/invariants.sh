#!/bin/sh
# Looks at the tests that the agent has written itself. They get neither our variables nor our descriptor, and no look at us.
set -u
cd "$AGENT_CWD" || exit 1
count=$(grep -c 'def test_' test_intervals.py 2>/dev/null)
if [ "${count:-0}" -ge 3 ]; then pass=true; else pass=false; fi
printf '{"test":"own-tests","pass":%s,"message":"%s test methods"}\n' "$pass" "${count:-0}" >&"$RESULTS_FD"
if fit-untrusted python3 -B -m unittest test_intervals >/dev/null 2>&1; then pass=true; else pass=false; fi
printf '{"test":"own-tests-pass","pass":%s}\n' "$pass" >&"$RESULTS_FD"
