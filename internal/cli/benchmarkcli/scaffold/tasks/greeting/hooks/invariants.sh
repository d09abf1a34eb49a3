#!/bin/sh
# One row per check on descriptor 3. AGENT_CWD is a copy of what the agent left. Its programs are run by fit-untrusted: they get
# neither the descriptor nor our variables, and cannot look into this script.
row() { # name, extra fields, then the words to compare: got, want
  if [ "$3" = "$4" ]; then pass=true; else pass=false; fi
  printf '{"test":"%s","pass":%s%s}\n' "$1" "$pass" "$2" >&3
}

cd "$AGENT_CWD" || exit 1
if [ -x greet.sh ]; then runs=yes; else runs=no; fi
row "greet.sh can be run" ',"gate":true' "$runs" yes
row "greets a person" ',"weight":2' "$(fit-untrusted ./greet.sh Ada 2>/dev/null)" "Hello, Ada!"
row "greets the world" "" "$(fit-untrusted ./greet.sh 2>/dev/null)" "Hello, world!"
