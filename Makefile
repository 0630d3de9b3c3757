# Each command sets up by itself what it needs (scripts/setup.sh) and is quick when that is done already.
.PHONY: help setup demo test test-fast soak fuzz check style format reference dist page pictures lock clean

python := .venv/bin/python
# As many processes as cores, but no more JVMs than a laptop's memory holds; tests/support/workers.py says which tests stay together.
pytest = $(python) -m pytest --numprocesses=$(processes) --maxprocesses=4 --dist=loadgroup --no-loadscope-reorder
processes := auto

# What looks for barriers on the page, in the tests of the browser.
axe := web/node_modules/axe-core/axe.min.js

# Some containers forbid Python to keep what it has compiled; tests that start many processes would compile everything in each.
unexport PYTHONDONTWRITEBYTECODE
# Sets are walked in the same order in every run; `make fuzz` tries others.
test test-fast soak: export PYTHONHASHSEED := 0

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s%s\n", $$1, $$2 }'

setup: ## make .venv with the locked dependencies, and check for Java
	@scripts/setup.sh java

demo: ## page views counted live, on a page in the browser and in the terminal (Ctrl-C stops it)
	@scripts/setup.sh java
	@.venv/bin/headrace demo pageviews

# Nothing before the command: a shell between would be taken for the user's by what looks for that.
test: export HEADRACE_EXAMPLES := quarter
# One more than cores: tests with servers and kills wait for most of their time.
test: processes := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
test: $(axe)
test: ## everything: style, types, and the fast, spark and system tests
	@scripts/setup.sh java postgres redis strace chromium
	@$(MAKE) --no-print-directory style
	@$(pytest)

test-fast: ## the tests without a JVM, with fewer random examples, for the inner loop
	@scripts/setup.sh
	@$(pytest) src tests/fast

soak: export HEADRACE_EXAMPLES := soak
soak: ## the long form of tests of which make test does a part: all random examples, 20,000 simulated crashes of the log; hours
	@scripts/setup.sh java
	@$(pytest) --session-timeout 86400 -m "soaked or randomized or hypothesis"

MINUTES := 5
fuzz: ## the randomized tests with fresh seeds for MINUTES=5; a failure prints the command that repeats it
	@scripts/setup.sh java
	@$(python) scripts/fuzz.py $(MINUTES)

check: ## style and types only
	@scripts/setup.sh
	@$(MAKE) --no-print-directory style
	@$(python) -m mypy

# Types are a test of the system class: mypy uses one core, and the tests use the others meanwhile.
style:
	@$(python) -m ruff check
	@$(python) -m ruff format --check

format: ## put imports and layout right
	@scripts/setup.sh
	@$(python) -m ruff check --fix
	@$(python) -m ruff format

reference: ## write docs/reference from the source
	@scripts/setup.sh
	@$(python) scripts/reference.py

dist: ## build the wheel and the sdist into dist/
	@scripts/setup.sh
	@rm -rf dist
	@$(python) -m hatchling build -d dist

$(axe): web/package-lock.json
	@scripts/setup.sh node
	@cd web && npm ci --silent && touch node_modules/axe-core/axe.min.js

pictures: ## take the pictures of the page in docs/pictures from the running demo (about ten minutes)
	@scripts/setup.sh java chromium
	@$(python) scripts/pictures.py

page: ## build the page from web/ (needs Node; the built files are part of the package)
	@cd web && npm ci --silent && npm run --silent check && npm run --silent build

compile := $(python) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links
lock: ## solve the dependencies again (pass UPGRADE=--upgrade for newer versions)
	@scripts/setup.sh
	@$(python) -m pip install --quiet uv
	@$(compile) $(UPGRADE) requirements/build.in -o requirements/build.txt
	@$(compile) $(UPGRADE) pyproject.toml --all-extras --group dev -o requirements/lock.txt

clean: ## remove what commands made, .venv too
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
