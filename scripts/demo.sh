#!/bin/bash
# make demo: what gristmill does, in less than 20 s after the build: throughput beside the machine's ceilings, a kill and an exact
# resume, a pack and a frame of it, 2048, demonstrations. GAMES=DIR feeds that directory instead and writes nothing into it.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
say() { printf '\n== %s\n' "$*"; }

say "building the gristmill command"
"$cargo" build --locked --release --package gristmill-cli
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill

data=demo-data
rm -rf "$data"
mkdir "$data"
shown=(--color always)
if [[ ! -t 1 ]]; then shown=(); fi

games=${GAMES:-}
if [[ -z $games ]]; then
  games=$data/games
  say "300 games, loose and in tars, played by a simple player"
  "$gristmill" generate chess "$games/loose" --games 100 --seed 1 -q
  "$gristmill" generate chess "$games/tars" --games 200 --seed 2 --tar -q
elif [[ ! -d $games ]]; then
  echo "GAMES=$games is no directory" >&2
  exit 2
fi

say "throughput beside the ceilings of this machine: gristmill bench $games"
"$gristmill" bench "$games" --batches 40 --batch-size 256 --reservoir 4096 --seed 1

stream=(--seed 1 --epochs 1 --batch-size 64 --reservoir 1024 --tensors planes:u8,values -q)
batches=120
say "the same $batches batches twice; the second run is killed (-9) in the middle and resumed where it stood"
"$gristmill" feed "$games" "${stream[@]}" --batches "$batches" --out "$data/whole" >/dev/null
whole=$(find "$data/whole" -name 'batch-*-values.npy' | wc -l)
"$gristmill" feed "$games" "${stream[@]}" --batches "$whole" --out "$data/parts" >/dev/null &
running=$!
while kill -0 "$running" 2>/dev/null; do
  if (($(find "$data/parts" -name 'batch-*-values.npy' 2>/dev/null | wc -l) * 3 >= whole)); then break; fi
done
kill -9 "$running" 2>/dev/null || true
wait "$running" 2>/dev/null || true
# A batch has two files; the last one may have only its first.
done=$(find "$data/parts" -name 'batch-*-values.npy' | wc -l)
((done > 0)) && done=$((done - 1))
echo "killed after $done of $whole batches; resuming"
if ((done < whole)); then
  "$gristmill" feed "$games" "${stream[@]}" --skip "0..$done" --batches $((whole - done)) --out "$data/parts" --overwrite >/dev/null
fi
find "$data/parts" -name '.*' -type f -delete
if ! diff -r "$data/whole" "$data/parts"; then
  echo "the batches differ: the resume was not exact" >&2
  exit 1
fi
echo "all $whole batches are the same to the byte"

say "a pack, and one frame of it: gristmill pack, gristmill inspect --frame"
"$gristmill" pack "$games" "$data/pack" -q
frames=$("$gristmill" inspect "$data/pack" --json | grep -o '"frames":[0-9]*' | head -n 1 | cut -d: -f2)
frame=$((RANDOM * 32768 + RANDOM))
"$gristmill" inspect "$data/pack" --frame $((frame % frames)) "${shown[@]}"

say "2048: logs, a pack of rows, and one step of it"
"$gristmill" generate 2048 "$data/logs" --games 4 --seed 1 --moves-max 400 -q
"$gristmill" pack "$data/logs" "$data/steps" -q
"$gristmill" inspect "$data/steps" --run 1 --step 300 "${shown[@]}"

python=$(command -v "${PYTHON:-python3}" || true)
if [[ -n $python ]]; then
  say "demonstrations: a film strip"
  "$python" scripts/demo_strip.py "$data/ball.npz"
  "$gristmill" inspect "$data/ball.npz" --png "$data/ball.png" -q
  if [[ -t 1 ]]; then "$gristmill" inspect "$data/ball.npz" --pictures always --strip 3; fi
fi
say "done; look around with: $gristmill --help"
