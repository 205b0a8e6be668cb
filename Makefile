# Tauloop: what one does with a fresh clone. Every target sets itself up in its own virtual environment, .venv.
# Needed beforehand: Python 3.11 or newer, make, and a C compiler (cc).
#
#   make demo    identify a Gantry-Tau from a log that it writes itself
#   make test    the test suite, under ten minutes on two cores
#   make nightly what takes too long for it: long tests, 200 000 damaged files, 5 000 random machines, older processors
#   make processors-test  the tests that depend on rounding, as on processors with AVX2 and with SSE2 alone
#   make fuzz    search for input that breaks a reader, SECONDS=60 each, coverage as the guide
#   make wheel-test       a wheel, built, installed in an empty environment and used, with a compiler and without
#   make walk             from the README to a verified machine, in an empty environment; how long it takes
#   make core-test         the tests without any extra: no engines, no CVXPY, no PyArrow
#   make torch-test        the tests of PyTorch, which is installed for them; TORCH='torch==2.13.0+cpu' names a small one
#   make nightly-versions the tests with the lowest and with the newest versions of all dependencies
#   make plant-search     the plant behind the dual-motor tables, up to 8 core-hours; goes on where it was left
#   make check   formatter, linter, type checker, import order
#   make fix     let the formatter and the linter mend what they can
#   make bench   the benchmarks
#   make guard   compare the speed of generated code with stored ratios; part of `make nightly` and of .ci/run
#   make docs    the documentation, into site/
#   make pictures all pictures of the documentation anew
#   make clean   remove all that these targets have made
#
# PYTHON=python3.13 chooses the interpreter; ARGS="..." is passed on: make test ARGS="-k closure -n 0".

PYTHON ?= python3
ARGS ?=

BIN := .venv/bin
CORE := .venv/.installed-core
ALL := .venv/.installed-all
DOCS := .venv/.installed-docs
FUZZ := .venv/.installed-fuzz
BENCH := .venv/.installed-bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test core-test torch-test processors-test nightly nightly-versions wheel-test walk fuzz plant-search check fix bench guard docs pictures clean

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

demo: $(CORE)
	$(BIN)/python examples/gantry_tau.py $(ARGS)

# One thread each for linear algebra: the two test processes already use two cores.
test core-test torch-test processors-test nightly nightly-versions fuzz: export OMP_NUM_THREADS ?= 1
test core-test torch-test processors-test nightly nightly-versions fuzz: export OPENBLAS_NUM_THREADS ?= 1
nightly fuzz: export PYTHONPATH := tests:tests/support
test: $(ALL)
	$(BIN)/python -m pytest -n 2 $(ARGS)

# What needs an extra is skipped by its name.
core-test: $(BIN)/python
	$(BIN)/python -m venv --clear out/core
	out/core/bin/python -m pip install --quiet --editable '.[dev]'
	out/core/bin/python -m pip install --quiet --no-deps --editable papers
	out/core/bin/python -m pytest -n 2 tests

# From its usual index it is gigabytes.
torch-test: TORCH ?= torch
torch-test: $(BIN)/python
	$(BIN)/python -m venv --clear out/torch
	out/torch/bin/python -m pip install --quiet '$(TORCH)' --editable '.[torch,dev]'
	out/torch/bin/python -m pytest -n 0 --nightly tests/model/test_torch_face.py tests/export/gpu/test_strangers_arrays.py $(ARGS)

# Each with compiled code of its own, in out/processors.
processors-test: TESTS ?= $(addprefix tests/,calibration compiler drives dynamics equations export identification \
    integrate kinematics mechanism model motion simulation study)
processors-test: $(ALL)
	@for processor in avx2 sse2; do \
	    echo "== $$processor"; $(BIN)/python -m pytest -n 2 --processor $$processor $(TESTS) $(ARGS) || exit 1; \
	done

nightly: FILES ?= 200000
nightly: MACHINES ?= 5000
nightly: ROUND_TRIPS ?= 500
nightly: FOREIGN ?= 1000
nightly: $(BENCH) core-test walk processors-test
	$(BIN)/python -m pytest -n 2 --nightly -m nightly $(ARGS)
	$(BIN)/python -m fuzz --files $(FILES) --machines $(MACHINES) --round-trips $(ROUND_TRIPS) --foreign $(FOREIGN)

# The wheel alone: neither the sources nor what .venv holds can be imported.
wheel-test: $(BIN)/python
	rm -rf out/wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir out/wheel .
	$(BIN)/python -m venv out/wheel/environment
	out/wheel/environment/bin/python -m pip install --quiet --no-compile out/wheel/*.whl
	out/wheel/environment/bin/python -I tools/use_wheel.py

# What a new user does, read from the README and the first tutorial.
walk: $(BIN)/python
	$(BIN)/python tools/walk.py

nightly-versions: $(BIN)/python
	$(BIN)/python -m pip install --quiet uv
	@for versions in lowest-direct highest; do \
	    echo "== $$versions"; $(BIN)/python -m venv --clear out/$$versions || exit 1; \
	    $(BIN)/uv pip install --quiet --python out/$$versions/bin/python --compile-bytecode --resolution $$versions \
	        --editable '.[all,engines,film,jax,dev]' --editable papers || exit 1; \
	    out/$$versions/bin/python -m pytest -n 2 $(ARGS) || exit 1; \
	done

fuzz: SECONDS ?= 60
fuzz: $(FUZZ)
	@for target in $$($(BIN)/python -m fuzz --list); do \
	    echo "== $$target"; $(BIN)/python -m fuzz.guided $$target --seconds $(SECONDS) $(ARGS) || exit 1; \
	done
	$(BIN)/python -m fuzz --round-trips 500 --foreign 5000 --seconds $(SECONDS) $(ARGS)

plant-search: FILE ?= out/dual_motor.json
plant-search: $(ALL)
	@mkdir -p $(dir $(FILE))
	$(BIN)/python -m tauloop_papers.dual_motor.search $(FILE) $(ARGS)

check: $(ALL)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files -z | xargs -0 $(BIN)/python tools/hygiene.py
	$(BIN)/python -m pytest -q tests/test_architecture.py

fix: $(ALL)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH)
	@for file in benchmarks/bench_*.py; do \
	    test -e "$$file" || { echo "benchmarks/ holds no bench_*.py: nothing was measured"; exit 1; }; \
	    echo "== $$file"; $(BIN)/python "$$file" $(ARGS) || exit 1; \
	done

# Run it with every change of codegen, programs, model or the evaluator.
guard: $(ALL)
	$(BIN)/python benchmarks/guard.py $(ARGS)

docs: $(DOCS)
	$(BIN)/python tools/gallery_pages.py --films
	$(BIN)/mkdocs build --strict $(ARGS)

# KINDS="gallery viewing": some of them.
pictures: KINDS ?=
pictures: $(ALL) $(DOCS)
	$(BIN)/python tools/site_pictures.py $(KINDS)

clean:
	rm -rf __pycache__ .venv site dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src papers tests benchmarks examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# An installation is renewed when pyproject.toml, or that of papers/, changes.
$(CORE): pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[analysis]'
	@touch $@

$(ALL): pyproject.toml papers/pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all,engines,film,jax,dev]' --editable papers
	@touch $@ $(CORE)

$(FUZZ): pyproject.toml papers/pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all,engines,film,jax,dev,fuzz]' --editable papers
	@touch $@ $(CORE) $(ALL)

$(BENCH): pyproject.toml papers/pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all,engines,film,jax,dev,bench]' --editable papers
	@touch $@ $(CORE) $(ALL)

$(DOCS): pyproject.toml $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs,view]'
	@touch $@ $(CORE)

$(BIN)/python:
	@command -v '$(PYTHON)' >/dev/null || \
	    { echo "Tauloop needs Python 3.11 or newer; '$(PYTHON)' was not found. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "Tauloop needs Python 3.11 or newer; '$(PYTHON)' is $$('$(PYTHON)' --version 2>&1). Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	'$(PYTHON)' -m venv --clear .venv
