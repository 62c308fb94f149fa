#!/bin/bash
# make wheel: one stripped abi3 wheel with the package and the gristmill command, into target/wheels.
# The command is the program itself in the wheel's scripts; `python -m gristmill` becomes it. The licences of what both are linked
# with lie beside ours.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
python=.venv/bin/python
target=${CARGO_TARGET_DIR:-target}

# One profile for both, so that what they share is compiled once.
export CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false
# Optimized as a whole: the library is a quarter smaller.
export CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
"$cargo" build --locked --release --package gristmill-cli
rm -rf "$target/wheels"
.venv/bin/maturin build --locked --release --out "$target/wheels"
CARGO="$cargo" "$python" scripts/licences.py notices "$target/THIRD-PARTY-NOTICES.txt"
exec "$python" scripts/put_command.py "$target/release/gristmill" "$target/THIRD-PARTY-NOTICES.txt" "$target"/wheels/*.whl
