#!/usr/bin/env bash
# Greets. Kept small: it is here to be released.
set -euo pipefail

case "${1:-}" in
  --version) echo "acorn @VERSION@" ;;
  "") echo "usage: acorn NAME" >&2; exit 2 ;;
  *) echo "Hello, $1" ;;
esac
