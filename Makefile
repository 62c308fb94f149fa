# make test   everything that is checked before a change goes in
# make demo   throughput, a kill and an exact resume, packs, 2048, demonstrations; GAMES=DIR feeds real games instead
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# Tests start Python hundreds of times. If Python may not keep compiled modules, each start compiles NumPy and gristmill again, or JAX.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
CARGO ?= cargo
BIN := .venv/bin
GAMES ?=
TORCH_INDEX ?=
SOAK_SECONDS ?= 600
FUZZ_SECONDS ?= 60
FUZZ_KEEP ?= 0
SIM_RUNS ?= 1000000
RUNS ?=
SEED ?=
FLAKES ?=
PEERS_MEGABYTES ?= 2000
PEERS ?=
FRAMEWORK ?= torch
BASE ?= main
# Tests wait for disks and processes most of their time, so there are more at once than processors.
TEST_THREADS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
TEST_WORKERS ?= $(shell echo $$(((3 * $$(getconf _NPROCESSORS_ONLN) + 1) / 2)))
# Random cases of each property that names no number of its own; each run draws others. `make soak` tries many more.
PROPTEST_CASES ?= 64
AS_TESTED := --features gristmill-python/as-tested
FUZZ_TARGETS ?=
FILES ?=
WITH_RAY ?=
# What builds the package for lints and tests of Python; `test` has built it before, and says so.
PACKAGE ?= package

.PHONY: help demo wheel test-wheel release-check check test built-rust test-rust test-python test-torch test-frameworks test-ray test-ray-core test-arrow test-view test-envs lint format-rust lint-rust lint-python package tables bench bench-devices bench-peers flakes sim sim-planted models models-planted mutants memory soak fuzz docs site clean tools

help:
	@echo "make demo [GAMES=DIR]   show throughput, an exact resume, packs and pictures, of generated (or real) games"
	@echo "make check [BASE=main]  what changed since BASE, with what was built before; make test checks all"
	@echo "make test               formatting, lints, documentation, Rust tests, the Python package and its tests"
	@echo "make wheel              a stripped wheel with the gristmill command, into target/wheels"
	@echo "make test-wheel         the wheel in an empty environment without Rust (after make wheel)"
	@echo "make release-check      wheel and sdist with each Python here and NumPy 1.26 and 2, their metadata, an sdist that builds"
	@echo "make lint               only formatting, lints and types"
	@echo "make test-torch         the tests that need PyTorch, Lightning, accelerate, datasets, TensorBoard or wandb (a download of up to 3 GB)"
	@echo "make test-frameworks    the examples in Flax, Equinox, Keras and with Atari (a download of 200 MB)"
	@echo "make test-ray           the tests that need Ray Train (a download of up to 3 GB, with PyTorch)"
	@echo "make test-ray-core      a job on Ray that loses machines and its driver, in .venv/ray (a download of 80 MB); GRISTMILL_SKIP_RAY=1 skips it"
	@echo "make test-arrow         the tests that need Polars, pandas, DuckDB, datasets or mlcroissant (a download of 250 MB)"
	@echo "make test-view          the pages of gristmill view, also in headless Chromium (the Debian package chromium, or CHROMIUM=PATH)"
	@echo "make test-envs          the tests that step Atari, dm_control and Procgen (a download of 300 MB)"
	@echo "make bench              speed, each figure beside its ceiling"
	@echo "make bench-devices      positions a second into steps on a GPU; FRAMEWORK=jax, with the PyTorch or JAX that is in .venv"
	@echo "make bench-peers        the same work by other loaders beside ours, on disk and from a bucket of PEERS_MEGABYTES=$(PEERS_MEGABYTES) (a download of 4 GB)"
	@echo "make flakes             the whole suite ten times under load, each changed test fifty times; FLAKES='--runs 2 test_x'"
	@echo "make sim                simulated worlds against the pages: RUNS=2000 from SEED=0, or SEED=N alone to replay one; prints JSON"
	@echo "make sim-planted        the faults in crates/gristmill-sim/planted, one after the other: which does the simulation find?"
	@echo "make soak               100 000 positions against other libraries, kills by the thousand (on disks and in buckets), each fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS), a long run on a growing directory; SOAK_SECONDS=$(SOAK_SECONDS)"
	@echo "make fuzz               every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS), or FUZZ_TARGETS=\"tar npy\" (a C++ compiler)"
	@echo "make models             hand-off, scheduler, sheets, arena, results in the orders of threads that shuttle tries"
	@echo "make models-planted     the faults of locks in models/planted, one after the other: each must be found"
	@echo "make mutants            each line of the files in .cargo/mutants.toml changed: which changes do unit tests not see? FILES=\"a.rs b.rs\" (cargo-mutants)"
	@echo "make memory             tests of most places with unsafe code in valgrind"
	@echo "make docs               the Rust documentation, into target/doc"
	@echo "make site               these pages and references as a site, into target/site"
	@echo "make clean              remove what was built, .venv and demo-data included"

demo:
	@bash scripts/check-tools.sh --rust "$(CARGO)"
	@GAMES="$(GAMES)" bash scripts/demo.sh

# Two things at once where one of them waits: for a registry while tests compile, for processes and disks while tests of the other
# language run.
check test built-rust package test-rust: export RUSTC_WORKSPACE_WRAPPER = $(CURDIR)/scripts/compiled.sh
check test built-rust package test-rust: export CLIPPY_ARGS = -Dwarnings
test: tools format-rust
	$(MAKE) -j2 built-rust .venv/ready $(if $(WITH_RAY),.venv/ray/ready)
	$(MAKE) tables package
	$(MAKE) -j2 PACKAGE= lint-python models $(if $(WITH_RAY),test-ray-core)
	$(MAKE) -j2 PACKAGE= test-rust test-python

# Not --all-targets: the package has no tests in Rust, and its bindings are compiled for maturin with other settings of Python.
built-rust:
	$(CARGO) test --locked --workspace --tests --benches $(AS_TESTED) --no-run --quiet

# Changed files and what has their names, incrementally.
check:
	@CARGO="$(CARGO)" $(PYTHON) scripts/check.py --base "$(BASE)"

lint: tools lint-rust docs package lint-python

format-rust:
	$(CARGO) fmt --check
	CARGO="$(CARGO)" $(PYTHON) scripts/compiled_once.py
	CARGO="$(CARGO)" $(PYTHON) scripts/licences.py check

lint-rust: format-rust
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# `cargo test --doc` asks the script for the examples, which documents each crate, too.
test-rust:
	RUSTDOC=$(CURDIR)/scripts/documented.sh RUST_TEST_THREADS=$(TEST_THREADS) PROPTEST_CASES=$(PROPTEST_CASES) \
	  $(CARGO) test --locked --workspace $(AS_TESTED) --no-fail-fast

lint-python: $(PACKAGE)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

test-python: $(PACKAGE)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(TEST_WORKERS) --dist worksteal --durations 30

# Apart from `test`, because of its size. TORCH_INDEX=URL takes the wheels from another index, such as one of CPU builds.
test-torch: package
	$(BIN)/pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(BIN)/pip install --quiet --disable-pip-version-check torchdata lightning accelerate datasets tensorboard wandb
	$(BIN)/pytest -k "torch or hugging or tensorboard or weights or lightning"

# Apart from `test`, because of their size.
test-frameworks: package
	$(BIN)/pip install --quiet --disable-pip-version-check flax optax equinox keras "ale-py>=0.11,<1"
	$(BIN)/pytest -k "frameworks"

# Apart from `test`, because of its size; see `test-torch` for TORCH_INDEX.
test-ray: package
	$(BIN)/pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	$(BIN)/pip install --quiet --disable-pip-version-check "ray[train]==2.60.*"
	$(BIN)/pytest --durations 8 tests/test_ray_*.py tests/test_field_jobs.py tests/test_resuming.py tests/test_docs_run.py \
	  -k "ray or (blocks and many-machines)"

# Two of these tests, bounded in time, in an environment of its own.
test-ray-core: $(PACKAGE)
	bash scripts/ray_losses.sh

# Not there where Ray cannot be had, which the script says.
.venv/ray/ready: .venv/ready
	bash scripts/ray_losses.sh install

# Apart from `test`, because of their size.
test-arrow: package
	$(BIN)/pip install --quiet --disable-pip-version-check polars duckdb pandas datasets mlcroissant
	$(BIN)/pytest tests/test_packs_arrow.py tests/test_describing.py tests/test_tabled.py "tests/test_docs_run.py::test_the_blocks_of_a_page_run[tables.md]" "tests/test_docs_run.py::test_the_blocks_of_a_page_run[your-own-game.md]"

# `test` runs these, too; here a browser has to be there.
test-view: package
	$(CARGO) build --locked --quiet -p gristmill-cli
	GRISTMILL_BROWSER=1 $(BIN)/pytest tests/test_view.py tests/test_view_browser.py

# Apart from `test`, because of their size. Procgen wants NumPy 1, and so a place of its own.
test-envs: package
	$(BIN)/python scripts/requirements.py atari dm-control | xargs -d '\n' \
	  $(BIN)/pip install --quiet --disable-pip-version-check opencv-python-headless zstandard
	$(BIN)/pytest tests/test_envs.py tests/test_envs_real.py
	$(PYTHON) -m venv .venv/procgen
	$(BIN)/python scripts/requirements.py procgen | xargs -d '\n' \
	  .venv/procgen/bin/pip install --quiet --disable-pip-version-check pytest
	PYTHONPATH=python .venv/procgen/bin/pytest tests/test_envs.py tests/test_envs_real.py

# The Python package, built like the tests so that nothing is compiled twice.
package: .venv/ready
	$(BIN)/maturin develop --locked --quiet --features as-tested $(if $(wildcard $(BIN)/uv),--uv)

# Made once: another Python over the environment of the first one breaks it.
.venv/ready: pyproject.toml scripts/requirements.py
	[[ -x $(BIN)/python ]] || $(PYTHON) -m venv .venv
	$(BIN)/python scripts/requirements.py build test jax docs >.venv/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check uv && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --requirement .venv/requirements.txt || { \
	  echo "uv cannot install the packages: pip does, which takes longer"; \
	  $(BIN)/pip install --quiet --disable-pip-version-check --requirement .venv/requirements.txt; }
	touch $@

# Optimized for users, and so compiled apart from everything else here.
wheel: .venv/ready
	CARGO="$(CARGO)" bash scripts/wheel.sh

# Apart from `test`, where these tests say that they are skipped: the wheel takes minutes to build.
test-wheel: .venv/ready
	GRISTMILL_WHEEL=$$(echo target/wheels/*.whl) $(BIN)/pytest -c pyproject.toml -rs --noconftest tests/test_wheel.py

# What is published, in empty environments of every Python here; WHEEL=FILE takes a wheel that is there.
release-check: .venv/ready
	$(if $(WHEEL),,$(MAKE) wheel)
	$(BIN)/python scripts/release_check.py --wheel "$(or $(WHEEL),$$(echo target/wheels/*.whl))"

# Syzygy tables of up to four men. Tests and benches that want them say so and go on where they cannot be had.
tables: .venv/ready
	$(BIN)/python scripts/fetch_tables.py .venv/syzygy || echo "skipped: no tables, tests of them are skipped"

# What is measured is optimized as wheels are (scripts/wheel.sh).
bench bench-devices bench-peers: export CARGO_PROFILE_RELEASE_LTO = fat
bench bench-devices bench-peers: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 1
bench: tables
	$(CARGO) bench --locked -p gristmill-demo -p gristmill-format -p gristmill-engine -p gristmill-jobs --benches
	bash scripts/syzygy.sh speed
	bash scripts/stockfish.sh speed
	bash scripts/bench.sh
	$(BIN)/python scripts/requirements.py bench | xargs -d '\n' $(BIN)/pip install --quiet --disable-pip-version-check
	$(BIN)/maturin develop --locked --quiet --release
	$(BIN)/python scripts/bench_demos.py
	$(BIN)/python scripts/bench_demo_pack.py
	$(BIN)/python scripts/bench_pairs.py
	$(BIN)/python scripts/bench_take.py
	$(MAKE) bench-peers

# Apart from `bench`: it wants a GPU, and a framework that uses it.
bench-devices: .venv/ready
	$(BIN)/maturin develop --locked --quiet --release
	$(BIN)/python bench/devices/run.py --framework $(FRAMEWORK)

# Each peer in an environment of its own below target/peers, which stays. PEERS="--works rows" and other options of bench/peers/run.py.
bench-peers: .venv/ready
	$(BIN)/maturin develop --locked --quiet --release
	$(CARGO) build --locked --quiet --release -p gristmill-faultserver
	$(BIN)/python bench/peers/install.py
	$(BIN)/python bench/peers/run.py $(PEERS)
	$(BIN)/python bench/peers/bucket.py $${CARGO_TARGET_DIR:-target}/release/gristmill-faultserver --megabytes $(PEERS_MEGABYTES)
	$(BIN)/pip install --quiet --disable-pip-version-check xxhash
	$(BIN)/python bench/peers/cold.py $${CARGO_TARGET_DIR:-target}/release/gristmill-faultserver

flakes: package tables
	PYTHON="$(PYTHON)" CARGO="$(CARGO)" bash scripts/flakes.sh $(FLAKES)

# One line of JSON at the end; a failure says its seed, which is shrunk, and replayed by SEED=.
sim:
	@RUNS="$(RUNS)" SEED="$(SEED)" $(CARGO) run --locked --quiet -p gristmill-sim

sim-planted:
	@CARGO="$(CARGO)" bash scripts/sim_planted.sh

soak: package tables
	$(MAKE) sim RUNS=$(SIM_RUNS)
	GRISTMILL_EXITS=50 $(BIN)/pytest -q tests/test_loader_processes.py
	GRISTMILL_POSITIONS=100000 $(BIN)/pytest -q tests/test_check.py tests/test_rescoring_tablebase.py
	PROPTEST_CASES=2000 $(CARGO) test --locked --workspace --lib --test formats
	bash scripts/syzygy.sh agree
	bash scripts/stockfish.sh agree
	GRISTMILL_KILLS=200 $(CARGO) test --locked -p gristmill-engine --test murder -- --nocapture
	GRISTMILL_KILLS=350 $(CARGO) test --locked -p gristmill-cli --test commands kills -- --nocapture
	$(MAKE) models memory fuzz
	SOAK_SECONDS=$(SOAK_SECONDS) bash scripts/soak.sh

fuzz:
	CARGO="$(CARGO)" FUZZ_SECONDS="$(FUZZ_SECONDS)" FUZZ_KEEP="$(FUZZ_KEEP)" bash scripts/fuzz.sh $(FUZZ_TARGETS)

# Locks in every order of threads that shuttle tries; models-planted plants faults of locks, which the models must find.
models:
	RUSTC_WORKSPACE_WRAPPER= $(CARGO) test --locked --quiet --manifest-path models/Cargo.toml

models-planted:
	@CARGO="$(CARGO)" bash scripts/models_planted.sh

# Hours for all files; FILES="crates/X/src/y.rs" takes some. Survivors are in target/mutants.out/missed.txt.
mutants:
	@CARGO="$(CARGO)" FILES="$(FILES)" bash scripts/mutants.sh

# The files that may use `unsafe`, by their tests in valgrind.
memory:
	@CARGO="$(CARGO)" bash scripts/memory.sh

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

# Needs the command for its reference.
site: package
	$(CARGO) build --locked --workspace --bin gristmill
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	$(CARGO) clean
	rm -rf .venv demo-data

tools:
	@bash scripts/check-tools.sh "$(PYTHON)" "$(CARGO)"
