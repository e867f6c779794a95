# Everything a person does with this repository. `make` alone prints this list.
# Needed: Python 3.11 or newer, git, make, and a package index. Java 17 or newer for Spark: `make java` brings one on
# Debian and Ubuntu. Go and a C compiler for `make interop`.

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.ready
BUILT := $(VENV)/.compiled
REWRITTEN := $(VENV)/.rewritten
# How many tests run at a time. Those of whole brokers mostly wait: two processors are busy with six of them.
WORKERS ?= 6
# The first Python on the path that is new enough. `make setup PYTHON=/some/python` chooses another one.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && { echo $$p; break; }; done)

# Python keeps what it compiles, also where it is told not to: tests start hundreds of processes.
CACHED := PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help setup compiled uptodate java demo run check test long chaos bench interop docs clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(BUILT) ## make .venv with everything that demo, run, check and test need

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, and none is on the PATH."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m compileall -q src/strandline  # brokers start faster, also where Python is told not to write caches
	@touch $@

$(BUILT): $(STAMP)
	@$(BIN)/strandline compile --if-possible || true  # plain Python does the same, only slower
	@touch $@

compiled: setup ## compile the modules that run for each request, if they have changed; needs a C compiler
	@$(BIN)/strandline compile

uptodate: setup # brokers of tests run compiled, where there is a compiler
	@$(BIN)/strandline compile --if-possible

$(REWRITTEN): $(STAMP) # pytest rewrites assertions: of all tests once, then of those that change
	@mkdir -p .pytest_cache
	@$(CACHED) $(BIN)/pytest --collect-only --quiet > .pytest_cache/collected || { cat .pytest_cache/collected; exit 1; }
	@touch $@

java: setup ## find a Java for Spark; where there is none, on Debian and Ubuntu, unpack one under .cache/java
	@$(BIN)/python scripts/java.py

demo: setup ## show the product at work: classic, diskless and tiered topics, a kill, a live switch, the pipeline on Spark, a cluster
	@$(BIN)/python scripts/java.py 2>/dev/null || true  # the demo leaves Spark out where there is no Java, and says why
	@$(BIN)/python scripts/demo.py

run: setup ## run a broker in the foreground, with its data in ./strandline-data
	$(BIN)/strandline broker

check: $(STAMP) ## lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: $(STAMP) ## check, and all tests (HYPOTHESIS_PROFILE=deep for long property tests)
	@$(MAKE) --no-print-directory --jobs=2 check uptodate java $(REWRITTEN)  # mypy and the compiler side by side
	$(CACHED) $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder  # tests/order.py puts long files first

long: setup java ## the tests that take minutes: a cluster of Spark, the command, processes that are killed
	$(BIN)/pytest -n 2 --dist loadfile -m long

chaos: uptodate ## append and read while brokers, links, disks and PostgreSQL fail, and judge what was read; SEED=7 MINUTES=30
	$(BIN)/python -m chaos $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(CHAOS)

bench: setup ## measure against Apache Kafka and a raw loopback copy, and print the table
	@$(BIN)/strandline compile --if-possible
	$(BIN)/python -m bench
	$(BIN)/python -m bench.controlplane

interop: setup ## run the client test suites of other projects against a broker
	$(BIN)/python -m interop

docs: setup ## write the pages that are generated from the code
	$(BIN)/python -m strandline.config.reference docs/configuration.md
	$(BIN)/python -m strandline.admin.http.metrics.reference docs/metrics.md

clean: ## remove the virtual environment and caches; data directories stay
	rm -rf $(VENV) src/strandline/__compiled__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
