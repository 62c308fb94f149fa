#!/usr/bin/env bash
# Plants each fault of crates/gristmill-sim/planted, one after the other, and asks the simulation for it. Prints a line for each and
# one line of JSON. The files that a fault changes must have no changes of their own; they are as they were at the end. Patches that are
# named take the place of all.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
RUNS=${PLANTED_RUNS:-2000}
planted=0 found=0 unfound=()
undo() { [ -z "${now:-}" ] || git apply -R "$now"; now=; }
trap undo EXIT
(($#)) || set -- crates/gristmill-sim/planted/*.patch
for patch in "$@"; do
  git apply "$patch"
  now=$patch
  name=$(basename "$patch" .patch)
  planted=$((planted + 1))
  if ! $CARGO build --locked --quiet -p gristmill-sim 2>/dev/null; then
    echo "$name: does not compile"
    exit 1
  fi
  # From 70 to 94, 100, 104 and 105 are of jobs and of what a process keeps: worlds of both for each seed, and fewer seeds. Others from 56 on come
  # up in few worlds of streams.
  case $name in
    7* | 8* | 9[0-4]* | 10[045]*) runs=800 jobs=1 ;;
    5[68]* | 6[07-9]* | 9[5-9]* | 101* | 108*) runs=$((RUNS * 20)) jobs=100000 ;;
    *) runs=$RUNS jobs=1000 ;;
  esac
  # What hangs for minutes is found, too: a failure of the simulation is any end but a clean one.
  if SEED=1 RUNS=$runs JOBS=$jobs FIRST_FAILURE=1 timeout 600 "${CARGO_TARGET_DIR:-target}/debug/gristmill-sim" >target/sim-planted.txt 2>&1; then
    unfound+=("\"$name\"")
    echo "$name: not found in $runs runs"
  else
    found=$((found + 1))
    echo "$name: $(grep -m1 '^seed' target/sim-planted.txt || echo 'the simulation broke off')" | cut -c1-200
  fi
  undo
done
echo "{\"planted\":$planted,\"found\":$found,\"unfound\":[$(IFS=,; echo "${unfound[*]:-}")]}"
