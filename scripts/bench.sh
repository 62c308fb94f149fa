#!/bin/bash
# make bench, second half: the whole river on generated games, one and two threads, beside what its parts alone can do.
# GAMES=DIR measures real games instead.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
"$cargo" build --locked --release --package gristmill-cli
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill

games=${GAMES:-}
if [[ -z $games ]]; then
  games=$(mktemp -d)
  trap 'rm -rf "$games"' EXIT
  "$gristmill" generate chess "$games" --games 400 --seed 7
fi
for planes in planes planes:u8 planes:bits; do
  echo
  echo "== $planes, probs, values"
  "$gristmill" bench "$games" --seed 1 --sampling-rate 1 --reservoir 8192 --batch-size 512 \
    --tensors "$planes,probs,values" --threads 1,2 --batches "${BATCHES:-60}"
done

# The drop-in for Lc0's loader beside the native one, and pairs beside other routes, on whatever build is installed.
if [[ -x .venv/bin/python ]] && .venv/bin/python -c 'import gristmill' 2>/dev/null; then
  echo
  echo "== drop-in for Lc0's loader"
  .venv/bin/python scripts/bench_dropin.py "$games"
  echo
  echo "== batches of pairs"
  .venv/bin/python scripts/bench_pairs.py
fi
