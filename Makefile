# Everything a developer runs. It keeps to what GNU make 3.81 (macOS) and the BSD tools know.
#
# A machine needs git, make and Python 3.11 or newer with venv; the rest is installed from the
# hashed locks in requirements/ into environments of their own, since they pin different SDKs:
#   .venv          tests, checks, demo       requirements/uv.txt, dev.txt
#   .venv-sam      the SAM CLI, cfn-lint     requirements/sam.txt
#   .venv-stack    the local stack           requirements/stack.txt
#   .venv-checkov  checkov                   requirements/checkov.txt, for the checks alone

PYTHON ?= python3
SHELL := /bin/sh

AWS_DEFAULT_REGION ?= eu-west-1
export AWS_DEFAULT_REGION
export SAM_CLI_TELEMETRY = 0
export UV_PYTHON_DOWNLOADS = never

PY := .venv/bin/python
UV := .venv/bin/uv
SAM := .venv-sam/bin/python -m samcli
CHECKOV := .venv-checkov/bin/checkov --config-file .checkov.yaml
REPORTS := .reports
RUNTIME := .aws-sam/runtime
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-header --upgrade

.DEFAULT_GOAL := help
.PHONY: help setup build deploy check test explore demo demo-kafka incident chaos fuzz verify up \
  mutants docs lock clean

help: ## what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

# --- ENVIRONMENTS --------------------------------------------------------------------------------

setup: .venv/.stamp .venv-sam/.stamp .venv-stack/.stamp ## the three environments, from the locks

# The interpreter behind PYTHON is asked for first: PYTHON may be the very environment that is
# removed here, when a developer has it activated.
.venv/.stamp: requirements/uv.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'relayhub needs Python 3.11 or newer; name one: make PYTHON=python3.13 <target>' >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo 'This Python has no venv; on Debian and Ubuntu: apt-get install python3-venv' >&2; \
	  exit 1; }
	@echo 'Setting up .venv'
	@base=`$(PYTHON) -c 'import sys; print(sys._base_executable)'` && rm -rf .venv && \
	  "$$base" -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --only-binary :all: -r requirements/uv.txt
	@$(UV) pip install --quiet --python $(PY) --require-hashes -r requirements/dev.txt
	@touch $@

.venv-sam/.stamp: requirements/sam.txt | .venv/.stamp
	@echo 'Setting up .venv-sam'
	@rm -rf .venv-sam && $(UV) venv --quiet --no-project --python $(PY) .venv-sam
	@$(UV) pip install --quiet --python .venv-sam/bin/python --require-hashes -r requirements/sam.txt
	@touch $@

.venv-stack/.stamp: requirements/stack.txt | .venv/.stamp
	@echo 'Setting up .venv-stack'
	@rm -rf .venv-stack && $(UV) venv --quiet --no-project --python $(PY) .venv-stack
	@$(UV) pip install --quiet --python .venv-stack/bin/python --require-hashes \
	  -r requirements/stack.txt
	@touch $@

.venv-checkov/.stamp: requirements/checkov.txt | .venv/.stamp
	@echo 'Setting up .venv-checkov'
	@rm -rf .venv-checkov && $(UV) venv --quiet --no-project --python $(PY) .venv-checkov
	@$(UV) pip install --quiet --python .venv-checkov/bin/python --require-hashes \
	  -r requirements/checkov.txt
	@touch $@

lock: .venv/.stamp ## remakes the locks with the newest versions
	$(COMPILE) -o requirements/uv.txt requirements/uv.in
	$(COMPILE) -o requirements/runtime.txt requirements/runtime.in
	$(COMPILE) -o requirements/dev.txt requirements/dev.in
	$(COMPILE) -o requirements/sam.txt requirements/sam.in
	$(COMPILE) -o requirements/stack.txt requirements/stack.in
	$(COMPILE) -o requirements/checkov.txt requirements/checkov.in
	@if grep -nE '://|file:|^ *--(index|extra|find)' requirements/*.txt; then \
	  echo 'A lock must not hold an address' >&2; exit 1; fi

# --- BUILD ---------------------------------------------------------------------------------------

build: .venv/.stamp .venv-sam/.stamp ## each function's self-contained zip, by the SAM CLI
	@mkdir -p $(REPORTS)
	@echo 'Building the functions'
	@MAKEFLAGS= $(SAM) build >$(REPORTS)/build.log 2>&1 || { cat $(REPORTS)/build.log >&2; exit 1; }
	@cd .aws-sam/build && du -sk *Function

# STACK=<name> for another stack than relayhub; YES=1 asks nothing.
deploy: build ## deploys to AWS, guided, with the answers of before
	@$(PY) -m tools.deploy $(if $(STACK),--stack $(STACK)) $(if $(YES),--yes)

# The libraries of every zip, installed once. What differs between two builds of the same tree is
# left out (bytecode, install records, scripts with a path in them), else an unchanged function
# would be deployed again; so are the pages of an API browser, which no function here serves.
$(RUNTIME)/.stamp: requirements/runtime.txt Makefile
	rm -rf $(RUNTIME) && mkdir -p $(RUNTIME)
	$(UV) pip install --quiet --python $(PY) --target $(RUNTIME) \
	  --python-platform aarch64-manylinux2014 --python-version 3.13 \
	  --only-binary :all: --require-hashes -r requirements/runtime.txt
	cd $(RUNTIME) && rm -rf .lock bin *.dist-info/RECORD *.dist-info/INSTALLER \
	  *.dist-info/REQUESTED *.dist-info/direct_url.json \
	  aws_lambda_powertools/event_handler/openapi/swagger_ui/swagger-ui*
	find $(RUNTIME) -name __pycache__ -prune -exec rm -rf {} +
	@if find $(RUNTIME) -name '*.so' -o -name '*.pyd' | grep .; then \
	  echo 'A zip must be pure Python: the library above is built for one platform' >&2; exit 1; fi
	touch $@

# SAM calls build-<LogicalId> once per function. `*` leaves out the stamp. A folder may hold the
# handlers of several functions; each of their zips then holds them all.
build-RelayFunction: FUNCTION = relay
build-MessagesFunction: FUNCTION = relay
build-ResolverFunction: FUNCTION = resolver
build-ReprocessorFunction: FUNCTION = reprocessor
build-PurgerFunction: FUNCTION = purger
build-%Function: $(RUNTIME)/.stamp
	cp -R $(RUNTIME)/* relayhub functions/$(FUNCTION)/*.py "$(ARTIFACTS_DIR)/"
	find "$(ARTIFACTS_DIR)" -name __pycache__ -prune -exec rm -rf {} +

# --- CHECKS --------------------------------------------------------------------------------------

# The template is looked at as it is, as SAM transforms it, and as it is with a canary.
check: setup .venv-checkov/.stamp ## format, lint, types, the template and its transform, docs
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	$(PY) -m mypy
	$(SAM) validate --lint
	.venv-sam/bin/python -m tools.transform template.yaml $(REPORTS)/transformed.json
	.venv-sam/bin/python -m tools.transform template.yaml $(REPORTS)/canary.json \
	  Canary=Canary10Percent5Minutes
	.venv-sam/bin/cfn-lint --ignore-checks W3037 W7001 -- \
	  $(REPORTS)/transformed.json $(REPORTS)/canary.json
	$(CHECKOV) --file $(REPORTS)/transformed.json $(REPORTS)/canary.json
	$(PY) -m tools.docs --check

# The end-to-end tests of a file run one after the other; each of the two workers has its stack.
test: setup build ## unit and integration tests, then end-to-end on the local stack
	$(PY) -m pytest -n 2 --dist loadfile --ignore tests/e2e --junit-xml $(REPORTS)/fast.xml tests
	$(PY) -m pytest -n 2 --dist loadfile --junit-xml $(REPORTS)/e2e.xml tests/e2e

mutants: setup ## takes each guard away in turn: a named check must miss it; ONLY= a few
	@$(PY) -m tools.mutants $(if $(ONLY),--only '$(ONLY)')

# SEED=<set-up>/<choices> replays one schedule; PLANT=min_age shows what is found where a bound is
# too small; MINUTES=<m> ends the run by then.
explore: .venv/.stamp ## every order of events on the real code; SEED=... replays one schedule
	@$(PY) -m tests.explore $(if $(SEED),--seed '$(SEED)') $(if $(PLANT),--plant '$(PLANT)') \
	  $(if $(MINUTES),--minutes '$(MINUTES)')

docs: .venv/.stamp ## remakes the generated docs
	$(PY) -m tools.docs

# --- LOCAL STACK ---------------------------------------------------------------------------------

demo: setup build ## the story on one machine; RELAY=naive shows what a hub without ledger does
	@$(PY) -m local.demo $(if $(RELAY),--relay $(RELAY))

demo-kafka: setup build ## the same over a Kafka topic: sent twice, killed, read again
	@$(PY) -m local.demo_kafka

# PAGE=docs/runbook.md puts the transcript there as well.
incident: setup build ## a night at the hub: found, explained and put right by commands alone
	@$(PY) -m local.incident $(if $(PAGE),--page $(PAGE))

# LIMIT_S is the longest time for the load; what is open afterwards has five minutes more.
chaos: setup build ## N acts under kills, lost replies and duplicates; SEED= plays a plan again
	@$(PY) -m tests.chaos.run $(if $(N),--n $(N)) $(if $(SEED),--seed $(SEED)) \
	  $(if $(LIMIT_S),--limit-s $(LIMIT_S)) $(if $(CLIENTS),--clients $(CLIENTS))

fuzz: setup build ## N cases for the API, from its OpenAPI page, and spoilt events; SEED= again
	@$(PY) -m tests.fuzz.run $(if $(N),--n $(N)) $(if $(SEED),--seed $(SEED))

verify: setup build ## grades the hub, kills included; RELAY=naive or powertools another relay
	@bin/relayhub verify --local $(if $(RELAY),--relay $(RELAY))

up: setup build ## starts the local stack and keeps it until Ctrl-C
	@$(PY) -m local.stack

clean: ## removes the environments and all that was built
	rm -rf .venv .venv-sam .venv-stack .venv-checkov .aws-sam .local $(REPORTS) .mypy_cache .ruff_cache \
	  .pytest_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
