#!/bin/sh
# Nothing may be added to the module.
set -u
row() { printf '{"test":"%s","pass":%s,"gate":true,"message":"%s"}\n' "$1" "$2" "$3" >&"$RESULTS_FD"; }
if grep -q '^require' "$AGENT_CWD/go.mod"; then
  row no-dependencies false "go.mod has requirements"
elif [ ! -f "$AGENT_CWD/go.mod" ]; then
  row no-dependencies false "go.mod is gone"
else
  row no-dependencies true ""
fi
