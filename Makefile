# What a newcomer and CI run: `make demo`, `make test`, `make check`. `make help` lists the rest.
# Needs make and Python >= 3.11, and no root. Everything is installed into $(VENV).

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
LOCK_VENV := build/lock-venv

# The folder that a process is started in must not be searched for modules: our folders would be found there as
# top-level packages (docs/design/001-layout.md).
export PYTHONSAFEPATH := 1
export PIP_NO_WARN_SCRIPT_LOCATION := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check format lock bench clean

help: ## Print this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

setup: $(VENV)/.test-installed ## Create the environment with all that tests and checks need
	@echo "Ready: $(VENV)"

demo: $(VENV)/.run-installed ## Score the example rollouts and print the summary
	@mkdir -p build
	@rm -f build/math_scored.*
	$(BIN)/rewarden score examples/math_rollouts.jsonl --recipe math -o build/math_scored.jsonl

test: $(VENV)/.test-installed ## Run the whole suite (ARGS='-k pool' chooses)
	$(BIN)/pytest $(ARGS)

check: $(VENV)/.test-installed ## Lint, formatting, types and import contracts
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy --package rewarden
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.test-installed ## Format the code, and mend what the linter can
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

lock: ## Pin the newest requirements that pyproject.toml and requirements/test.in allow
	@rm -rf $(LOCK_VENV)
	@requirements/new-venv $(LOCK_VENV)
	requirements/lock $(LOCK_VENV)
	@rm -rf $(LOCK_VENV)

bench: $(VENV)/.run-installed ## Measure Rewarden beside its peers (they get an environment of their own)
	benchmarks/run

clean: ## Remove the environment, and everything built or cached
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@echo "Creating $(VENV)"
	@requirements/new-venv $(VENV)

# The stamps depend on what they were made from, so that nothing is installed twice.
$(VENV)/.run-installed: requirements/run.txt pyproject.toml | $(BIN)/python
	@echo "Installing Rewarden"
	@$(PIP) install --no-deps -r requirements/run.txt
	@requirements/link $(VENV)
	@touch $@

$(VENV)/.test-installed: requirements/test.txt $(VENV)/.run-installed
	@echo "Installing the test tools"
	@$(PIP) install --no-deps -r requirements/test.txt
	@$(PIP) check || $(BIN)/python -m pip check
	@touch $@
