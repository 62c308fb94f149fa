#!/bin/bash
# Stands for rustdoc in `cargo test`: documents the crate whose examples it is to run, warnings being errors, then runs them.
# What the crate rests on is compiled already; `cargo doc` would compile it again.
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
