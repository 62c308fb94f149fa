#!/usr/bin/env bash
# Plants each fault of models/planted, one after another, and runs the models. Prints a line for each fault, and one line of JSON. Fails if
# the models do not find a fault. The files that a fault changes must have no other changes. At the end they are as before.
# Patches in the arguments replace the list of all faults.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
planted=0 found=0 unfound=()
undo() { [ -z "${now:-}" ] || git apply -R "$now"; now=; }
trap undo EXIT
(($#)) || set -- models/planted/*.patch
said=models/target/planted.txt
for patch in "$@"; do
  git apply "$patch"
  now=$patch
  name=$(basename "$patch" .patch)
  planted=$((planted + 1))
  if ! $CARGO test --locked --quiet --manifest-path models/Cargo.toml --no-run 2>/dev/null; then
    echo "$name: does not compile"
    exit 1
  fi
  # The models find a fault if they end in any way but a clean one, also if they spin for minutes.
  if timeout 300 "$CARGO" test --locked --quiet --manifest-path models/Cargo.toml >"$said" 2>&1; then
    unfound+=("\"$name\"")
    echo "$name: not found"
  else
    found=$((found + 1))
    echo "$name: $(grep -oE '^(deadlock!.*|    [a-z_]+$|assertion.*)' "$said" | head -1 || echo 'the models broke off')" | cut -c1-200
  fi
  undo
done
echo "{\"planted\":$planted,\"found\":$found,\"unfound\":[$(IFS=,; echo "${unfound[*]:-}")]}"
((found == planted))
