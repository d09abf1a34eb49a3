#!/bin/sh
# Hidden: the agent never sees this.
echo 1..2
check() { # NUMBER NAME WANTED ARGUMENTS...
  number=$1 name=$2 want=$3; shift 3
  got=$(fit-untrusted sh ./reverse.sh "$@" 2>/dev/null)
  if [ "$got" = "$want" ]; then echo "ok $number - $name"; return; fi
  echo "not ok $number - $name"
  printf '# got "%s", not "%s"\n' "$(printf '%.80s' "$got" | tr -d '[:cntrl:]')" "$want"
}
check 1 'three' 'c b a' 'a' 'b' 'c'
check 2 'one' 'z' 'z'
