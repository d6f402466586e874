# Each target sets up what it needs: Python 3.11 to 3.13, make and a package index are enough.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Another Python beside the first: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV ?= .venv
# Of the quick tests many wait: three of them keep two cores busy. The others start whole suites.
WORKERS ?= 3
SYSTEM_WORKERS ?= 2
# Without bytecode each process of a suite compiles all its sources anew: a second of CPU each.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
OUT ?= $(CURDIR)/dist
DISTS := protos shared/rules shared/client shared/kit services/evaluation services/table \
	services/matchmaking services/wallet services/console services/suite

.PHONY: help setup run demo play test test-system test-slow chaos fuzz check protos released docs site dashboards tiles screenshots format bench locks audit dist clean

help: ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 14

run: setup ## Start every service here, with bots at practice tables, until Ctrl-C
	@$(BIN)/fangcheng up

demo: setup ## Play hands of every rule set between four bots, then audit the ledger
	@$(BIN)/fangcheng demo
	@echo 'Next: make run, and open the link that it prints'

play: setup ## Play in this terminal against three bots, in a suite of its own or that of make run (RULES=jintan)
	@$(BIN)/fangcheng play --rule-set $(or $(RULES),jintan)

test: setup ## Run the tests that take seconds
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow and not system"

test-system: setup .venv-protos/ready ## Run the tests that start the services as processes
	$(BIN)/pytest -n $(SYSTEM_WORKERS) --dist loadfile --no-loadscope-reorder -m "system and not slow" --timeout 600

chaos: setup ## Kill and pause wallet, database (SECONDS=600 each engine), tables from the queue on (HANDS=25 each); SEED=
	FANGCHENG_CHAOS_SECONDS=$(or $(SECONDS),600) FANGCHENG_CHAOS_HANDS=$(or $(HANDS),25) \
		FANGCHENG_CHAOS_SEED=$(or $(SEED),$$RANDOM) \
		$(BIN)/pytest tests/system/test_wallet_bank.py tests/system/test_table_chaos.py -s

fuzz: setup ## Give parsers, records, the round and every call 200,000 hostile inputs (FUZZ_INPUTS=, SEED=)
	FUZZ_INPUTS=$(or $(FUZZ_INPUTS),200000) SEED=$(or $(SEED),$$RANDOM) $(BIN)/pytest tests/fuzz -s --timeout 7200

test-slow: setup ## Run the tests that take minutes
	$(BIN)/pytest -m slow --timeout 3600

check: setup .venv-protos/ready ## Check style, types, imports, contracts, stubs and generated docs
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	@# It tests a text in pieces, and tells of each piece that an exception was not needed for.
	$(BIN)/bandit --quiet --recursive services shared tools deploy 2> >(grep -v 'nosec encountered' >&2)
	$(BIN)/mypy
	$(BIN)/mypy tools/*.py tools/dashboards tools/tiles benchmarks/*.py examples/*.py examples/python/*.py
	$(BIN)/lint-imports --no-logo
	$(BIN)/buf lint
	$(BIN)/python tools/released.py
	.venv-protos/bin/python tools/stubs.py --check
	$(BIN)/python tools/protodoc.py --check
	$(BIN)/python tools/accessdoc.py --check
	$(BIN)/python tools/errorsdoc.py --check
	$(BIN)/python tools/settingsdoc.py --check
	$(BIN)/python tools/deployment.py --check
	$(BIN)/python tools/rulesdoc.py --check
	$(BIN)/python tools/metricsdoc.py --check
	$(BIN)/python -m tools.dashboards --check
	$(BIN)/python -m tools.tiles --check
	$(BIN)/python benchmarks/report.py --check
	$(BIN)/python tools/capacitydoc.py --check

protos: setup .venv-protos/ready ## Generate the stubs and docs/api.md from the .proto files
	.venv-protos/bin/python tools/stubs.py
	$(BIN)/python tools/protodoc.py

released: setup ## Release the contracts as they are: what was added must not change any more, and its clients are kept
	$(BIN)/python tools/released.py --write

docs: protos ## Generate docs/errors.md, docs/security.md, docs/settings.md, docs/operations/metrics.md, docs/rules/ and what deploy/ has for containers
	$(BIN)/python tools/accessdoc.py
	$(BIN)/python tools/errorsdoc.py
	$(BIN)/python tools/settingsdoc.py
	$(BIN)/python tools/deployment.py
	$(BIN)/python tools/rulesdoc.py
	$(BIN)/python tools/capacitydoc.py
	$(BIN)/python tools/metricsdoc.py

site: setup ## Build the docs as a site in site/, which needs no network, neither here nor at its readers
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dashboards: setup ## Render the dashboards of tools/dashboards into deploy/grafana, and their page
	$(BIN)/python -m tools.dashboards

tiles: setup ## Draw the console's tiles; FONTS=folder of Noto CJK to take new characters up
	$(BIN)/python -m tools.tiles $(if $(FONTS),--fonts $(FONTS))

screenshots: setup ## Take the pictures in docs/images, of the console and of a game, of suites that are started for them
	$(BIN)/python -m tools.screenshots
	$(BIN)/python -m tools.playpictures

format: setup ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

bench: setup .venv-bench/ready ## Measure, print the ratios to the references, and write docs/performance.md
	.venv-bench/bin/python benchmarks/kernels.py
	.venv-bench/bin/python benchmarks/hands.py
	$(BIN)/python benchmarks/rules.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/matchmaking.py
	$(BIN)/python benchmarks/series.py
	$(BIN)/python benchmarks/console.py
	$(BIN)/python benchmarks/wallet.py
	$(BIN)/python benchmarks/capacity.py
	$(BIN)/python benchmarks/report.py

locks: setup ## Resolve the lock files anew (UPGRADE=1: to the newest versions)
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python tools/locks.py $(if $(UPGRADE),--upgrade)

audit: setup ## Look the packages of all locks up among known vulnerabilities (OPTIONS= of pip-audit)
	@$(BIN)/python -m tools.audit $(OPTIONS)

dist: setup ## Build every distribution into dist/, with a bill of materials of what containers have
	@rm -f $(OUT)/fangcheng*
	@for folder in $(DISTS); do (cd $$folder && $(CURDIR)/$(BIN)/hatchling build -d $(OUT)); done
	@$(BIN)/python -m tools.sbom $(OUT)

setup: $(VENV)/ready ## Make or refresh .venv from the lock, with all distributions in it

clean: ## Remove everything that can be made again
	rm -rf .venv .venv-* dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find benchmarks protos shared services tests tools -name __pycache__ -prune -exec rm -rf {} +

ENVIRONMENT := tools/environment.py requirements/bootstrap.lock

$(VENV)/ready: $(ENVIRONMENT) requirements/dev.lock $(DISTS:%=%/pyproject.toml)
	@$(PYTHON) $< $(VENV) requirements/dev.lock $(DISTS)

.venv-bench/ready: $(ENVIRONMENT) requirements/bench.lock shared/rules/pyproject.toml
	@$(PYTHON) $< .venv-bench requirements/bench.lock shared/rules

.venv-protos/ready: $(ENVIRONMENT) requirements/protos.lock
	@$(PYTHON) $< .venv-protos requirements/protos.lock
