#!/bin/bash
# make flakes: tests that fail now and then. Runs the whole suite RUNS times (10), and each test that is named, or else each
# that was changed since BASE, TIMES times (50), all of it with four busy loops beside it. Says which test failed how often
# and which one hung, and exits with 1 when one did.
#
#   scripts/flakes.sh [--runs N] [--times N] [--base REVISION] [--timeout SECONDS] [TEST...]
#
# A TEST is tests/test_x.py, tests/test_x.py::test_y, or a part of the name of a Rust test. It wants what `make test` made.
set -euo pipefail
cd "$(dirname "$0")/.."

busy=()
finish() { for loop in "${busy[@]}"; do kill "$loop" 2>/dev/null || true; done; }
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for _ in 1 2 3 4; do
  (while :; do :; done) &
  busy+=($!)
done

"${PYTHON:-python3}" scripts/flakes.py "$@"
