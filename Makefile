# Each command sets up by itself what it needs (scripts/setup.sh) and is quick when that is done already.
.PHONY: help setup demo test test-fast check lint format lock clean

python := .venv/bin/python
# As many processes as cores, but no more JVMs than a laptop's memory holds; who is done takes over the other's last tests.
pytest = $(python) -m pytest --numprocesses=$(processes) --maxprocesses=4 --dist=worksteal
processes := auto

# Some containers forbid Python to keep what it has compiled; tests that start many processes would compile everything in each.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s%s\n", $$1, $$2 }'

setup: ## make .venv with the locked dependencies, and check for Java
	@scripts/setup.sh java

demo: ## page views counted live in the terminal (Ctrl-C stops it)
	@scripts/setup.sh java
	@.venv/bin/headrace demo pageviews

# Nothing before the command: a shell between would be taken for the user's by what looks for that.
test: export HEADRACE_EXAMPLES := all
# One more than cores: tests with servers and kills wait for most of their time.
test: processes := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
test: ## everything: style, types, and the fast, spark and system tests
	@scripts/setup.sh java postgres redis strace
	@$(MAKE) --no-print-directory lint
	@$(pytest)

test-fast: ## the tests without a JVM, with fewer random examples, for the inner loop
	@scripts/setup.sh
	@$(pytest) src tests/fast

check: ## style and types only
	@scripts/setup.sh
	@$(MAKE) --no-print-directory lint

lint:
	@$(python) -m ruff check
	@$(python) -m ruff format --check
	@$(python) -m mypy

format: ## put imports and layout right
	@scripts/setup.sh
	@$(python) -m ruff check --fix
	@$(python) -m ruff format

compile := $(python) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links
lock: ## solve the dependencies again (pass UPGRADE=--upgrade for newer versions)
	@scripts/setup.sh
	@$(python) -m pip install --quiet uv
	@$(compile) $(UPGRADE) requirements/build.in -o requirements/build.txt
	@$(compile) $(UPGRADE) pyproject.toml --all-extras --group dev -o requirements/lock.txt

clean: ## remove what commands made, .venv too
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
