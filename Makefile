# Every target sets up what it needs: Python 3.11 to 3.13, make and a package index are enough.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
DISTS := protos shared/rules shared/client shared/kit services/evaluation services/table \
	services/matchmaking services/wallet services/suite
ENVIRONMENT = $(PYTHON) tools/environment.py

.PHONY: help setup run demo test test-system test-slow check protos format bench locks dist clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -t -s $$'\t'

setup: .venv/ready ## Make .venv from the lock, with all distributions in it

.venv/ready: requirements/bootstrap.lock requirements/dev.lock $(DISTS:%=%/pyproject.toml) tools/environment.py
	@$(ENVIRONMENT) .venv requirements/dev.lock $(DISTS)

.venv-protos/ready: requirements/bootstrap.lock requirements/protos.lock tools/environment.py
	@$(ENVIRONMENT) .venv-protos requirements/protos.lock
