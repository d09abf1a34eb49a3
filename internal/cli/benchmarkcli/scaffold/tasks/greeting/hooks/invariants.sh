#!/bin/sh
# One row per check on descriptor 3. AGENT_CWD is a copy of what the agent left. Its programs are run by fit-untrusted: they get
# neither the descriptor nor our variables, and cannot look into this script.
row() { # name, extra fields, then the words to compare: got, want
  if [ "$3" = "$4" ]; then printf '{"test":"%s","pass":true%s}\n' "$1" "$2" >&3; return; fi
  got=$(printf '%.80s' "$3" | tr -d '[:cntrl:]' | sed 's/[\\"]/\\&/g') # as text in JSON
  printf '{"test":"%s","pass":false%s,"message":"got \\"%s\\", not \\"%s\\""}\n' "$1" "$2" "$got" "$4" >&3
}

cd "$AGENT_CWD" || exit 1
if [ -x greet.sh ]; then runs=yes; else runs=no; fi
row "greet.sh can be run" ',"gate":true' "$runs" yes
row "greets a person" ',"weight":2' "$(fit-untrusted ./greet.sh Ada 2>/dev/null)" "Hello, Ada!"
row "greets the world" "" "$(fit-untrusted ./greet.sh 2>/dev/null)" "Hello, world!"
