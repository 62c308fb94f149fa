#!/bin/bash
# Says what is missing to build and test, and how to get it on Debian; installs nothing. `--rust CARGO` looks at Rust alone.
set -euo pipefail
cd "$(dirname "$0")/.."

rust_only=
[[ ${1:-} == --rust ]] && rust_only=1
python=${1:-python3}
cargo=${2:-cargo}
missing=0
lacks() {
  echo "missing: $1" >&2
  echo "  $2" >&2
  missing=1
}

needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
has_rust() {
  local found
  found=$("$cargo" --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p')
  [[ -n $found ]] || { lacks "a cargo that runs" "see https://rustup.rs"; return; }
  [[ $(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -1) == "$needed" ]] ||
    lacks "Rust $needed or newer; $cargo is $found" "rustup update stable (https://rustup.rs)"
}

command -v cc >/dev/null || lacks "a C compiler" "apt-get install gcc libc6-dev"
if [[ -n $rust_only ]]; then
  if command -v "$cargo" >/dev/null; then has_rust; else lacks "Rust" "see https://rustup.rs"; fi
  exit "$missing"
fi
if command -v "$cargo" >/dev/null; then
  has_rust
  "$cargo" fmt --version >/dev/null 2>&1 || lacks "rustfmt" "rustup component add rustfmt"
  "$cargo" clippy --version >/dev/null 2>&1 || lacks "clippy" "rustup component add clippy"
else
  lacks "Rust" "see https://rustup.rs"
fi
if command -v "$python" >/dev/null; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || lacks "Python 3.11 or newer" "apt-get install python3"
  "$python" -c 'import venv, ensurepip' 2>/dev/null || lacks "the venv module" "apt-get install python3-venv"
else
  lacks "Python 3.11 or newer" "apt-get install python3 python3-venv"
fi
exit "$missing"
