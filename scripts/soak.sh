#!/bin/bash
# make soak, last part: demonstrations packed that are larger than memory may be, generated games judged by python-chess,
# then a long feed of a directory to which games are added, some of them damaged. Beside the feed, soak_world.py runs a world in which
# things go wrong. Memory and descriptors must stop growing. SOAK_SECONDS=7200 is the long run.
# Fails when the loader dies, finds no bad chunk, or is larger at the end than after a quarter of the time.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
seconds=${SOAK_SECONDS:-600}
"$cargo" build --locked --release --package gristmill-cli
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill

folder=$(mktemp -d)
started=()
finish() {
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait || true
  rm -rf "$folder"
}
trap finish EXIT

.venv/bin/python scripts/soak_pack.py "$gristmill"

"$gristmill" generate chess "$folder/judged" --games 40 --seed 2
GRISTMILL_GAMES=$folder/judged .venv/bin/pytest -q tests/test_judged_games.py

.venv/bin/python scripts/soak_world.py "$gristmill" "$seconds" &
world=$!
started+=("$world")

"$gristmill" generate chess "$folder/games" --games 500 --seed 1
truncate --size=300 "$folder/games/training.450.gz"
"$gristmill" generate chess "$folder/games" --games 1000000 --first 501 --seed 1 --interval 0.05 2>/dev/null &
started+=($!)
timeout --signal=INT --kill-after=10 "$seconds" "$gristmill" feed "$folder/games" --pool 400 --reservoir 8192 \
  --batch-size 256 --seed 1 --json >"$folder/fed.json" &
feed=$!
started+=("$feed")

# `timeout` has the feed as its child.
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$(pgrep -P "$feed")/status"; }
descriptors() { find "/proc/$(pgrep -P "$feed")/fd" -mindepth 1 | wc -l; }
sleep "$((seconds / 4))"
early=$(resident)
few=$(descriptors)
sleep "$((seconds - seconds / 4 - 2))"
late=$(resident)
many=$(descriptors)
status=0
wait "$feed" || status=$?
if ((status != 0 && status != 124)); then
  echo "soak: the feed ended with $status" >&2
  exit 1
fi
echo "resident after a quarter: $early KiB, at the end: $late KiB; descriptors: $few, $many"
cut -c1-300 "$folder/fed.json"
grep -q '"bad_chunks":[1-9]' "$folder/fed.json" || { echo "soak: the damaged game was not noticed" >&2; exit 1; }
((late < early + 32768)) || { echo "soak: memory grew by more than 32 MiB" >&2; exit 1; }
((many <= few + 8)) || { echo "soak: descriptors grew from $few to $many" >&2; exit 1; }
wait "$world" || { echo "soak: the world failed" >&2; exit 1; }
