#!/bin/bash
# Our binpacks beside sfbinpack's: `stockfish.sh agree|speed`, a part of make soak and make bench.
# It is GPL-3: it is built here only, in a workspace of its own. Skipped, and said so, where it cannot be had; what differs is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
workspace=bench/stockfish/Cargo.toml
echo
echo "== binpacks: $1"
if ! "$cargo" fetch --quiet --manifest-path "$workspace"; then
  echo "skipped: sfbinpack cannot be fetched"
elif [[ $1 = agree ]]; then
  "$cargo" run --quiet --locked --release --manifest-path "$workspace" -- agree "${2:-1}" "${3:-20000}"
else
  file=$(mktemp)
  trap 'rm -f "$file"' EXIT
  "$cargo" run --quiet --locked --release --manifest-path "$workspace" -- golden "${2:-1}" "${3:-20000}" "$file"
  "$cargo" run --quiet --locked --release --manifest-path "$workspace" -- speed "$file"
fi
