# Everything sets itself up: a fresh machine needs Python 3.11 or newer, pip and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: demo
demo: $(INSTALLED)  ## Train, evaluate, export and serve real handwritten digits
	@$(BIN)/moxing demo

.PHONY: test
test: $(INSTALLED)  ## Run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: lint
lint: $(INSTALLED)  ## Run the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: format
format: $(INSTALLED)  ## Bring the code into the project's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: benchmark
benchmark: $(INSTALLED)  ## Measure steps, start-up and memory beside the alternatives
	$(BIN)/python benchmarks/step_overhead.py

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing TensorFlow and what goes with it into $(VENV); this takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,test,lint]'
	@touch $@

.PHONY: clean
clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo_output
