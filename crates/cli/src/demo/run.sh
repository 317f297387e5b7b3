#!/usr/bin/env bash
# Tests the program that is given as the first argument.
set -uo pipefail

program=$1
failed=0

check() {
  local name=$1 wanted=$2 found=$3
  if [ "$found" = "$wanted" ]; then
    echo "ok: $name"
  else
    echo "not ok: $name: wanted \"$wanted\", got \"$found\"" >&2
    failed=1
  fi
}

check "it greets by name" "Hello, Ann!" "$("$program" Ann)"
check "it says how it is used" "usage: acorn NAME" "$("$program" 2>&1)"
exit "$failed"
