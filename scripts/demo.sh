#!/bin/bash
# make demo: a directory of games, fed while more are added, then one drawn position. Ends by itself after about 20 s.
# GAMES=DIR feeds that directory instead and writes nothing into it.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
seconds=${DEMO_SECONDS:-12}
say() { printf '\n== %s\n' "$*"; }

say "building the gristmill command"
"$cargo" build --locked --release --package gristmill-cli
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill

player=
finish() {
  if [[ -n $player ]]; then
    kill "$player" 2>/dev/null || true
    wait "$player" 2>/dev/null || true
  fi
}
trap finish EXIT

games=${GAMES:-}
if [[ -z $games ]]; then
  games=demo-data
  rm -rf demo-data
  say "200 games as .gz and 300 in tars, played by a simple player"
  "$gristmill" generate chess demo-data/loose --games 200 --seed 1
  "$gristmill" generate chess demo-data/packed --games 300 --seed 2 --tar
  say "more games arrive while the river runs"
  "$gristmill" generate chess demo-data/loose --games 100000 --first 201 --seed 1 --interval 0.1 2>/dev/null &
  player=$!
elif [[ ! -d $games ]]; then
  echo "GAMES=$games is no directory" >&2
  exit 2
fi

say "feeding $games for $seconds seconds: gristmill feed $games"
status=0
timeout --signal=INT --kill-after=10 "$seconds" "$gristmill" feed "$games" --seed 1 --reservoir 4096 --batch-size 256 ||
  status=$?
# 124: the time was up, which is the plan.
if ((status != 0 && status != 124)); then
  exit "$status"
fi

one=$(find -L "$games" -type f \( -name '*.gz' -o -name '*.tar' \) ! -name '.*' -print -quit)
if [[ -n $one ]]; then
  say "one position: gristmill inspect $one --frame 12"
  "$gristmill" inspect "$one" --frame 12 || "$gristmill" inspect "$one"
fi
say "done; look around with: $gristmill --help"
