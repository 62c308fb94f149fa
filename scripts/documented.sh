#!/bin/bash
# Cargo calls this instead of rustdoc in `cargo test`. It documents the crate, fails on any warning, and then runs the examples.
# `cargo test` has compiled the dependencies of the crate already; `cargo doc` would compile them again.
set -euo pipefail
words=()
examples=
while (($#)); do
  case $1 in
    --test) examples=1 ;;
    *) words+=("$1") ;;
  esac
  shift
done
[[ -z $examples ]] || rustdoc "${words[@]}" --out-dir "${CARGO_TARGET_DIR:-target}/documented" --deny warnings
exec rustdoc ${examples:+--test} "${words[@]}"
