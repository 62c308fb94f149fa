#!/bin/bash
# make wheel: one stripped abi3 wheel with the package and the gristmill command, into target/wheels.
# The command is the program itself in the wheel's scripts; `python -m gristmill` becomes it. The licences of what both are linked
# with lie beside ours. zig links both for the C library of manylinux_2_28; where it cannot be had, they need one as new as this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
python=.venv/bin/python
target=${CARGO_TARGET_DIR:-target}
platform=$(uname -m)-unknown-linux-gnu

# One profile for both, so that what they share is compiled once.
export CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false
# Optimized as a whole: the library is a quarter smaller.
export CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
rm -rf "$target/wheels"
if [[ -z ${WITHOUT_ZIG:-} ]] && "$python" -m pip install --quiet --disable-pip-version-check ziglang cargo-zigbuild; then
  export PATH="$PWD/.venv/bin:$PATH"
  "$cargo" zigbuild --locked --release --package gristmill-cli --target "$platform.2.28"
  maturin build --locked --release --zig --target "$platform" --compatibility manylinux_2_28 --out "$target/wheels"
  program=$target/$platform/release/gristmill
else
  echo "skipped: zig, which links for manylinux_2_28; the wheel is for systems as new as this one"
  "$cargo" build --locked --release --package gristmill-cli
  .venv/bin/maturin build --locked --release --out "$target/wheels"
  program=$target/release/gristmill
fi
CARGO="$cargo" "$python" scripts/licences.py notices "$target/THIRD-PARTY-NOTICES.txt"
exec "$python" scripts/put_command.py "$program" "$target/THIRD-PARTY-NOTICES.txt" "$target"/wheels/*.whl
