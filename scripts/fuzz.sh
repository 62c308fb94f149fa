#!/usr/bin/env bash
# Runs fuzz targets with coverage and the address sanitizer, each for FUZZ_SECONDS: the targets in the arguments, or all. Prints a line for
# each target: edges reached, inputs tried, new inputs kept. An input that breaks a promise stays in fuzz/artifacts, and the script fails.
# FUZZ_KEEP=N adds N inputs to the corpus of each target, small and large ones, of those of at most 512 bytes
# that together reach most of what is new. fuzz/dictionaries has words of a format for the targets that need them.
# RUSTC_BOOTSTRAP lets the compiler of the workspace build the targets; it has the sanitizer's library. libFuzzer needs a C++ compiler.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
seconds=${FUZZ_SECONDS:-60} keep=${FUZZ_KEEP:-0}
host=$(rustc -vV | sed -n 's/^host: //p')
(($#)) || set -- $(cd fuzz/fuzz_targets && printf '%s\n' ./*.rs | sed 's|./||; s|\.rs$||')
features=(--no-default-features)
[[ " $* " == *" config "* || " $* " == *" ledger "* ]] && features=()
bins=()
for target in "$@"; do bins+=(--bin "$target"); done
# C code gets the sanitizer, too. GCC makes a constant array of one block global, and still marks it as gone after the block.
export CFLAGS="${CFLAGS:-} -fno-sanitize-address-use-after-scope"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address --cfg=fuzzing" \
  "$CARGO" build --locked --quiet --release --manifest-path fuzz/Cargo.toml --target "$host" "${features[@]}" "${bins[@]}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p fuzz/artifacts
# libdeflate defines one table twice under the same name. The sanitizer would report this as a fault.
export ASAN_OPTIONS=detect_odr_violation=0:detect_leaks=0
# N of the lines of sizes and names, at even distances: the smallest alone reach little.
spread() { awk -v n="$1" '{ name[NR] = $2 } END { step = NR > n ? NR / n : 1; for (at = (1 + step) / 2; at < NR + 1; at += step) print name[int(at)] }'; }
broken=()
for target in "$@"; do
  program=fuzz/target/$host/release/$target found=$folder/$target said=$folder/said
  mkdir "$found"
  words=()
  [[ ! -f fuzz/dictionaries/$target ]] || words=(-dict="fuzz/dictionaries/$target")
  "$program" "$found" "fuzz/corpus/$target" -max_total_time="$seconds" -print_final_stats=1 -timeout=20 -rss_limit_mb=3000 \
    "${words[@]}" -artifact_prefix="fuzz/artifacts/$target-" >"$said" 2>&1 || broken+=("$target")
  edges=$(grep -oE ' cov: [0-9]+' "$said" | tail -1 | tr -dc 0-9)
  tried=$(grep -oE 'number_of_executed_units: [0-9]+' "$said" | tr -dc 0-9)
  echo "$target: ${edges:-?} edges, ${tried:-?} inputs, $(find "$found" -type f | wc -l) new"
  [[ " ${broken[*]:-} " != *" $target "* ]] || tail -40 "$said"
  if ((keep)); then
    mkdir "$found.least"
    "$program" -set_cover_merge=1 "$found.least" "fuzz/corpus/$target" "$found" >"$said" 2>&1
    find "$found.least" -type f -size -2 -printf '%s %p\n' | sort -n | spread "$keep" |
      while read -r input; do cp -n "$input" "fuzz/corpus/$target/"; done
  fi
done
((${#broken[@]} == 0)) || { echo "fuzz: promises broken: ${broken[*]}; inputs in fuzz/artifacts" >&2; exit 1; }
