# longfat: `make demo` answers a question, `make test` runs the tests. Both set everything up first, in .venv.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One interpreter for maturin and cargo alike, so that neither rebuilds what the other has built.
export PYO3_PYTHON := $(abspath $(BIN)/python)

# Tests start hundreds of Python processes, which must not compile longfat's modules each time.
unexport PYTHONDONTWRITEBYTECODE

RUST_VERSION := $(shell sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

.PHONY: help setup demo test test-all page-of-tests test-rust test-python site explorer lint format wheel reference bench bench-instructions clean

help:
	@echo "make demo       set up, build, answer one question in 15 seconds"
	@echo "make test       set up, run the Rust and Python tests that answer in seconds"
	@echo "make test-all   the same, with slow tests and all random cases (continuous integration)"
	@echo "make test-rust, make test-python"
	@echo "                one half of make test"
	@echo "make lint       rustfmt, clippy (and checks for Windows and macOS), ruff, mypy"
	@echo "make bench      measure speed (benchmarks/; HTSIM=DIR: csg-htsim too)"
	@echo "make bench-instructions"
	@echo "                count instructions of simulations (needs valgrind; UPDATE=1 writes the table)"
	@echo "make wheel      build a profile-guided wheel in dist/ (needs rustup's component llvm-tools)"
	@echo "make format     rewrite the sources in the project's format"
	@echo "make site       build the documentation site into target/site"
	@echo "make explorer   build the page of longfat explore into target/explorer (needs node and npm)"
	@echo "make reference  rewrite the generated tables of docs/reference"
	@echo "make clean      remove .venv, build products and caches (runs/ stays)"

setup: $(VENV)/.native-release

$(VENV)/.packages: constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "longfat needs Python 3.11 or newer: no $(PYTHON) found (set PYTHON=/path/to/python)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "longfat needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1) (set PYTHON=/path/to/python)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) lacks the module venv: install it (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Setting up $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "Installing the pinned Python packages ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement constraints.txt
	@touch $@

# The documentation site and the notebooks: more packages, which only the site and the tests use.
$(VENV)/.site: constraints-site.txt $(VENV)/.packages
	@echo "Installing the pinned packages of the site ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement constraints-site.txt
	@touch $@

# The wheel comes in two builds: optimised for use, and with the checks of the tests' profile, whose crates it shares.
# Its stamp tells which one is installed. Installing the other compiles nothing that is compiled.
$(VENV)/.native-release: OPTIONS := --release
$(VENV)/.native-release $(VENV)/.native-dev: $(VENV)/.packages pyproject.toml $(RUST_SOURCES)
	@command -v cargo >/dev/null || { echo "longfat needs Rust $(RUST_VERSION) or newer: no cargo found" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "longfat needs a C compiler: no cc found (on Debian and Ubuntu: apt install gcc)" >&2; exit 1; }
	@v=$$(rustc --version | cut -d' ' -f2); \
	  test "$$(printf '%s\n' $(RUST_VERSION) $$v | sort -V | head -1)" = "$(RUST_VERSION)" || \
	  { echo "longfat needs Rust $(RUST_VERSION) or newer, but rustc is $$v" >&2; exit 1; }
	@echo "Building the native part ..."
	@MAKEFLAGS= PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop $(OPTIONS) --quiet
	@rm -f $(VENV)/.native*
	@touch $@

demo: setup
	@$(BIN)/longfat demo

# Tests that wait for wall time leave processors idle, so there are three processes per processor.
PYTEST := $(BIN)/pytest --numprocesses $(shell expr 3 \* $$(getconf _NPROCESSORS_ONLN)) --maxprocesses 8 --dist loadgroup
RUST_TESTS := $(BIN)/python -m tests.rust_programs
RUST_LOG := target/test-rust.log

test-all: export LONGFAT_EFFORT ?= 1
test-all: PYTEST += -m "not minutes"
test-all: RUST_TESTS += --doc
# The tests of the explorer's page need node and a WebAssembly toolchain, and are skipped without.
test test-python: EXPLORER := explorer/build --test
test-all: EXPLORER := explorer/build --test --release

# The page of the explorer and the native module compile at the same time, then Rust's test programs beside the tests in Python.
# Both languages run, whatever fails; the status is that of both, and Rust's output comes last.
test test-all: $(VENV)/.site
	@$(MAKE) --no-print-directory -j2 $(VENV)/.native-dev page-of-tests EXPLORER="$(EXPLORER)"
	@status=0; \
	  $(RUST_TESTS) >$(RUST_LOG) 2>&1 & rust=$$!; \
	  $(PYTEST) || status=1; \
	  wait $$rust || status=1; \
	  cat $(RUST_LOG); \
	  missing=$$(tests/missing-packages); \
	  test -z "$$missing" || echo "Some tests need Debian packages that are missing: $$missing"; \
	  exit $$status

# Without make's jobserver, which only recipes with make in them can reach: cargo would warn.
page-of-tests:
	@MAKEFLAGS= $(EXPLORER)

test-rust: $(VENV)/.packages
	@$(RUST_TESTS)

test-python: $(VENV)/.native-dev $(VENV)/.site
	@$(EXPLORER)
	@$(PYTEST)

lint: $(VENV)/.packages $(VENV)/.site
	rustfmt --check $$(git ls-files '*.rs')
	cargo clippy --locked --workspace --all-targets -- -D warnings
	packaging/check-platforms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: setup
	rustfmt $$(git ls-files '*.rs')
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Any build of the native module serves: the site lists commands and names. It includes the page of make explorer, if built.
site: $(VENV)/.site
	@ls $(VENV)/.native* >/dev/null 2>&1 || $(MAKE) --no-print-directory setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file website/mkdocs.yml
	@echo "target/site/index.html"

# The page of longfat explore. Without a WebAssembly toolchain it works only with `longfat explore`.
explorer:
	@explorer/build

# A wheel for distribution. Its compiler learns from simulations of built-in studies which branches are usual.
wheel: $(VENV)/.packages
	@test -x "$$(rustc --print target-libdir)/../bin/llvm-profdata" || \
	  { echo "make wheel needs the tools of rustc's LLVM (rustup component add llvm-tools)" >&2; exit 1; }
	@explorer/build || echo "The wheel has no page for longfat explore." >&2
	@echo "Building twice, with simulations in between ..."
	@$(BIN)/maturin build --release --pgo --quiet --out dist
	@ls dist/*.whl

reference: $(VENV)/.native-dev
	$(BIN)/python -m tests.docs.reference
	$(BIN)/python -m tests.study.key_types
	$(BIN)/python -m tests.explorer.units

# Instructions of whole simulations, compared with a table. The runner's version is that of the crate in Cargo.lock.
RUNNER := target/tools/bin/gungraun-runner
$(RUNNER): Cargo.lock
	cargo install --quiet --locked --force --root target/tools \
		--version $$(cargo metadata --locked --format-version 1 | $(BIN)/python -c "import json, sys; \
		print(next(p['version'] for p in json.load(sys.stdin)['packages'] if p['name'] == 'gungraun'))") gungraun-runner
	touch $@

bench-instructions: setup $(RUNNER)
	GUNGRAUN_RUNNER=$(abspath $(RUNNER)) $(BIN)/python benchmarks/instructions.py $(if $(UPDATE),--update)

bench: setup bench-instructions
	cargo bench --locked --package longfat-benchmarks --bench scenarios --bench congestion --bench hop --bench packet_hop --bench tcp
	@for script in $(filter-out benchmarks/instructions.py benchmarks/compare_htsim.py,$(wildcard benchmarks/*.py)); do echo "== $$script"; $(BIN)/python "$$script" || exit 1; done
	$(if $(HTSIM),$(BIN)/python benchmarks/compare_htsim.py $(HTSIM))

clean:
	rm -rf $(VENV) explorer/node_modules python/longfat/explorer/simulator.js target dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests \( -name __pycache__ -o -name '_native*.so' -o -name '_native*.pyd' \) -prune -exec rm -rf {} +
