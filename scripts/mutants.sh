#!/usr/bin/env bash
# Changes the files of .cargo/mutants.toml, or FILES, one line after another, and runs the unit tests of the crate against each change. Prints
# the changes that no test sees, and leaves all in target/mutants.out. Works in a copy of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
"$CARGO" mutants --version >/dev/null 2>&1 || {
  echo "mutants: needs cargo-mutants 27: cargo install cargo-mutants --locked --version '^27'" >&2
  exit 1
}
mkdir -p target
chosen=()
# cargo-mutants adds files of its arguments to those of its settings: FILES take the settings above the list alone.
if [ -n "${FILES:-}" ]; then
  sed '/^examine_globs/,$d' .cargo/mutants.toml >target/mutants.toml
  chosen=(--config target/mutants.toml)
fi
for file in ${FILES:-}; do
  [ -f "$file" ] || { echo "mutants: no file $file" >&2; exit 1; }
  chosen+=(--file "$file")
done
# Tests of journals and ledgers force hundreds of small files: in memory they take a hundredth of the time.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
  export TMPDIR=/dev/shm
fi
# Dependencies stay compiled from one run to the next, and what a change does not touch from one change to the next.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/mutants CARGO_INCREMENTAL=1
exec "$CARGO" mutants --output target "${chosen[@]}" "$@"
