#!/bin/sh
# Hidden: the agent never sees this.
echo 1..2
check() { # NUMBER NAME WANTED ARGUMENTS...
  number=$1 name=$2 want=$3; shift 3
  got=$(fit-untrusted sh ./last-line.sh "$@" 2>/dev/null)
  if [ "$got" = "$want" ]; then echo "ok $number - $name"; return; fi
  echo "not ok $number - $name"
  printf '# got "%s", not "%s"\n' "$(printf '%.80s' "$got" | tr -d '[:cntrl:]')" "$want"
}
check 1 'last of three' 'c' "$(printf 'a\nb\nc')"
check 2 'only one' 'x' 'x'
