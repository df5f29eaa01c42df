# Everything is set up from nothing but python3 (3.11 or newer) and make; the tests' Azurite also needs npm.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
AZURITE := .azurite/node_modules/azurite/package.json
AZURITE_VERSION := 3.35.0
SEEDS ?= 100
# Half of the tests wait for processes of their own, so two at a time for each processor.
JOBS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')
ONLY ?=

.PHONY: demo test long takeovers lint bench soak clean
.DELETE_ON_ERROR:

demo: $(VENV)/.run
	$(BIN)/fdagent demo

test: ready
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile

# What takes minutes, run by CI after the tests: kills, a soak of one minute, torture, 1,000 hours of thirty fleets, the
# largest scopes of the world and its mutants, the whole year of the demo's data.
long: ready
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m long --ignore tests/takeover

# Held to bounds of time, so for a machine that does nothing else meanwhile.
takeovers: ready
	PYTHONHASHSEED=0 $(BIN)/python -m pytest -m long tests/takeover

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.dev .bench/peers/.ready
	$(BIN)/python -m tests.bench $(ONLY)

soak: $(VENV)/.dev
	$(BIN)/python -m tests.soak --seeds $(SEEDS) --exhaustive

clean:
	rm -rf $(VENV) .azurite .bench .demo build dist .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fdagent needs Python 3.11 or newer: name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The package itself, as a user installs it, with its bytecode compiled.
$(VENV)/.run: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -m compileall -q fdagent machines models
	@touch $@

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q fdagent machines models
	@touch $(VENV)/.run $@

.PHONY: ready azurite
ready:
	@$(MAKE) --no-print-directory -j2 $(VENV)/.dev azurite

# Without npm the Azurite tests are skipped and the summary says so; in CI that is a failure (see tests/conftest.py).
azurite:
	@if [ ! -f $(AZURITE) ]; then \
	  if command -v npm >/dev/null; then \
	    npm install --prefix .azurite --no-save --no-package-lock --no-audit --no-fund --silent azurite@$(AZURITE_VERSION) \
	      || { echo "npm could not install azurite@$(AZURITE_VERSION): see npm's log, or its registry and proxy settings"; exit 1; }; \
	  else echo "npm is not here: the tests against Azurite will be skipped"; fi; fi

# Peers live in a folder of their own, for the bench only.
.bench/peers/.ready: tests/bench/peers.txt
	mkdir -p .bench
	$(PYTHON) -m venv .bench/peers
	.bench/peers/bin/python -m pip install --quiet --disable-pip-version-check -r tests/bench/peers.txt
	@touch $@
