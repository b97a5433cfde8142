# Everything needs only Python 3.11 or newer and make.
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run check test lint test-sqlite test-postgres coverage bench mutants fuzz chaos upgrade soak live-kubernetes lock openapi clean

help:  ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

run: .venv/run  ## Start the service on 127.0.0.1, with its data under var/; PORT=8001 for another port than 8000
	@exec $(BIN)/python -m infra_service.quickstart --port $(PORT)

# The lint runs beside the tests, and says something only where it finds something.
check: .venv/dev  ## The quick part of the gate, a minute: lint, and the tests that start no process and open no socket
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(MAKE) --no-print-directory lint >"$$log" 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --quick; tests=$$?; \
	wait $$lint || { cat "$$log"; exit 1; }; \
	exit $$tests

# Lint and SQLite run side by side, PostgreSQL after them. Each part is shown when it has ended.
test:  ## The whole gate
	@$(MAKE) --no-print-directory --keep-going -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint test-sqlite; first=$$?; \
	$(MAKE) --no-print-directory test-postgres && exit $$first

lint: .venv/dev  ## Format, lint, types, import contracts, migrations, the OpenAPI document, plain English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.gate
	$(BIN)/python -m tests.support.prose

test-sqlite: .venv/dev  ## The part on SQLite: each test of the database with its first case
	$(BIN)/python -m pytest -n 2 --dist worksteal --part

# There are more processes than cores, because many of these tests wait for servers and clocks.
test-postgres: .venv/dev  ## The part on a PostgreSQL of its own
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m pytest -n 4 --dist worksteal --part

coverage: .venv/dev  ## Line and branch coverage of the gate's tests on both databases, at least 98 %; before a release
	$(BIN)/python -m pytest -n 2 --dist worksteal --part --cov --cov-report=
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m pytest -n 4 --dist worksteal --part --cov --cov-append --cov-report=term --cov-fail-under=98

bench: .venv/bench  ## Measure every target, and write docs/explanation/performance.md
	$(BIN)/python -m tools.bench

mutants: .venv/bench  ## Change the rules, one change at a time: some test must fail; ROOM=states/rules is one module
	$(BIN)/python -m tools.mutants $(ROOM)

fuzz: .venv/dev  ## Thousands of generated requests; every answer must be as docs/reference/openapi.yaml says
	$(BIN)/python -m tools.fuzz $(EXAMPLES) $(SEED)

chaos: .venv/dev  ## What stands around the service fails, with real parts; as root
	$(BIN)/python -m tools.chaos $(SCENARIOS)

soak: .venv/dev  ## An hour of steady traffic on PostgreSQL, and what grows meanwhile
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m tools.soak

upgrade: .venv/dev  ## From the release FROM to this one and back, with traffic, on both databases
	$(BIN)/python -m tools.upgrades $(FROM)

live-kubernetes: .venv/dev  ## The collector against a real control plane, before each release; 40 minutes, on Debian
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m tools.live_kubernetes $(OPTIONS)

lock: .venv/dev  ## Pin the newest allowed versions, with hashes
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-strip-extras --no-header -q -U -o requirements.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -o requirements-dev.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --group bench --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements-dev.txt -o requirements-bench.txt
	$(BIN)/uv pip compile pyproject.toml --extra kubernetes --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-kubernetes.txt
	$(BIN)/uv pip compile --group agent --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-kubernetes.txt -o requirements-agent.txt
	$(BIN)/uv pip compile pyproject.toml --extra s3 --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-s3.txt
	$(BIN)/uv pip compile pyproject.toml --extra sso --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-sso.txt

openapi: .venv/dev  ## Write docs/reference/openapi.yaml from the views
	$(BIN)/python -m tests.gate --write-openapi

clean:  ## Remove the environment, never the data under var/
	rm -rf .venv

# One marker file for each set of packages, so that a changed lock file installs again.
.venv/run: requirements.txt | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements.txt
	@touch $@

# The optional parts that the service runs with: sso, s3, kubernetes.
.venv/extra-%: requirements-%.txt | .venv/run
	$(BIN)/pip install -q --require-hashes -r $<
	@touch $@

.venv/dev: requirements-dev.txt | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements-dev.txt
	@touch $@ .venv/run

.venv/bench: requirements-bench.txt | .venv/dev
	$(BIN)/pip install -q --require-hashes -r requirements-bench.txt
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and $(PYTHON) is %d.%d: make PYTHON=python3.11 run" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv
