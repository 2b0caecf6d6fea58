# Every target creates the virtual environment first. Needed: Python 3.11 to 3.13 with pip, and make.
# With another interpreter than python3: make setup PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: setup
setup: $(INSTALLED)  ## Create the virtual environment with all dependencies

.PHONY: demo
demo: $(INSTALLED)  ## Train, evaluate, export and serve real handwritten digits
	@$(BIN)/moxing demo

.PHONY: test
test: $(INSTALLED)  ## Run the tests that are worth running after every change
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

.PHONY: test-slow
test-slow: $(INSTALLED)  ## Run the others: full matrices, long faults, whole trainings
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

.PHONY: lint
lint: $(INSTALLED)  ## Run the linters
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: format
format: $(INSTALLED)  ## Fix and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: benchmark
benchmark: $(INSTALLED)  ## Measure step time, start-up time and memory against other frameworks
	$(BIN)/python benchmarks/step_overhead.py

.PHONY: build
build: $(INSTALLED)  ## Build the wheel and the source distribution into dist/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt build
	rm -rf build dist
	$(BIN)/python -m build

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing TensorFlow and the other dependencies into $(VENV); this takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,test,lint]'
	@touch $@

.PHONY: clean
clean:  ## Remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist demo_output
