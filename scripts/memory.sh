#!/usr/bin/env bash
# Runs the tests of most files that may use `unsafe` in valgrind's memcheck. tests/architecture/places.rs of the engine names these files.
# Memcheck finds reads of memory that nobody wrote, and accesses beyond an allocation. `make fuzz` runs decoders with the address sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
command -v valgrind >/dev/null || { echo "memory: needs the Debian package valgrind" >&2; exit 1; }
# Usage: checked PACKAGE KIND-OF-TARGET TESTS...
checked() {
  local package=$1 target=$2 program
  shift 2
  # shellcheck disable=SC2086
  program=$("$CARGO" test --locked --quiet -p "$package" $target --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1)
  (cd "crates/$package" && valgrind -q --error-exitcode=99 --leak-check=no "$program" --test-threads 1 --quiet "$@")
}
checked gristmill-runtime --lib runtime::arena runtime::sheet runtime::pages store::held tablebase::tests
checked gristmill-format --lib encode::simd
checked gristmill-format "--test formats" container_gzip corpus_replay::gzip_chunk
