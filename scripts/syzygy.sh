#!/bin/bash
# Our tablebase prober beside others: `syzygy.sh agree|speed [POSITIONS]`, a part of make soak and make bench.
# One of the others is GPL-3: they are built here only, in a workspace of their own. Skipped, and said so, where there are
# no tables or where the packages cannot be had; differing values are a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
workspace=bench/syzygy/Cargo.toml
tables=${GRISTMILL_SYZYGY:-.venv/syzygy}
echo
echo "== tablebase probes: $1"
if [[ ! -e $tables/KQvK.rtbw ]]; then
  echo "skipped: no tables in $tables; run make tables or set GRISTMILL_SYZYGY"
elif ! "$cargo" fetch --quiet --manifest-path "$workspace"; then
  echo "skipped: the other probers cannot be fetched"
else
  "$cargo" run --quiet --locked --release --manifest-path "$workspace" -- "$1" "$tables" "${2:-100000}"
fi
