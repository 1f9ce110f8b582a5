# Two commands are all it takes: `make up` and `make test`. Both set up .venv first (seconds if it is there).
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help up setup test compose-test lint format clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'make up ARGS="--workers 2 --port 9000" passes flags on; `$(BIN)/mini-vllm up --help` lists them'

up: setup ## set up what is missing and start the service; Ctrl-C drains and stops it
	@exec $(BIN)/mini-vllm up $(ARGS)

setup: ## make .venv, build llama.cpp for this CPU, fetch the default model
	@$(PYTHON) -m cli.bootstrap

test: setup lint ## set up what is missing, check format, lint, types and floors, run all tests
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

compose-test: setup ## build the images and try the Compose project; needs a Docker engine
	$(BIN)/python -m pytest -v --timeout 1800 tests/compose $(ARGS)

lint: setup ## format, lint, types and floors, without tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove .venv and caches; the model and the service's data stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
