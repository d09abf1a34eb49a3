#!/bin/sh
# Runs the report against the real service: the numbers must be those of the service. The agent's program gets neither our variables nor our descriptor, and no look at us.
set -u
want='Jon: 1 open, 0 done
Mira: 1 open, 1 done'
got=$(cd "$AGENT_CWD" && fit-untrusted node src/report.js 2>/dev/null)
if [ "$got" = "$want" ]; then pass=true; else pass=false; fi
printf '{"test":"report-of-the-service","pass":%s}\n' "$pass" >&"$RESULTS_FD"
