# GPUaaS: two commands matter, `make up` and `make test`. They set everything up by themselves.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PORT ?= 8080
LAB ?= yes
BIN := .venv/bin
PACKAGES := core sdk agent cli lab apps/slurm
EDITABLE := $(foreach package,$(PACKAGES),-e ./$(package))
SOURCES := $(PACKAGES) tests bench
APT_LAB := systemd-container debootstrap iproute2 nftables openssh-client
APT_TEST := docker-registry openssh-server postgresql softhsm2 strace
STACK := $(BIN)/python -m gpuaas_lab.stack
export PYTHONDONTWRITEBYTECODE := # empty: compiled modules are kept, every start is faster

##@ The two commands

.PHONY: up
up: setup $(if $(filter no,$(LAB)),,apt-lab) ## Set up, start everything, deploy a Slurm cluster, run a job. LAB=no: no hosts. PORT=8080
	@$(STACK) up --port $(PORT) $(if $(filter no,$(LAB)),--no-lab) $(if $(LISTEN),--listen $(LISTEN))

.PHONY: test
test: setup apt-lab apt-test node-tools ## Everything: lint, types, import contracts, fresh contracts, unit, API, real hosts, real Slurm.
	@$(BIN)/python tests/everything.py

##@ Day to day

.PHONY: down
down: ## Stop everything and leave the machine as it was (LAB=no: keep the data)
	@if [ -x $(BIN)/python ]; then $(STACK) down $(if $(filter no,$(LAB)),--no-lab); else echo "Nothing is set up here."; fi

.PHONY: status
status: setup ## What runs, and where
	@$(STACK) status

.PHONY: logs
logs: setup ## The newest lines of every log
	@$(STACK) logs

.PHONY: check
check: setup apt-test node-tools ## The inner loop: format, lint, types, import contracts, fresh contracts, fast tests
	@$(BIN)/python tests/everything.py --fast

.PHONY: format
format: setup ## Format the code
	@$(BIN)/ruff format -q $(SOURCES) && $(BIN)/ruff check -q --fix $(SOURCES)

.PHONY: contracts
contracts: setup ## Generate contracts/ and the SDK's models from the code
	@$(BIN)/gpuaas-core contracts contracts && $(BIN)/python -m gpuaas_sdk.generate

.PHONY: soak
soak: setup apt-lab ## The repeated proofs in full: 50 fresh instances, 50 cycles of a worker, kills in the middle of commands (half an hour)
	@GPUAAS_SOAK=1 $(BIN)/pytest -q -s -m lab tests/test_first_sbatch.py tests/test_cycles.py tests/test_sieve.py

.PHONY: bench
bench: setup apt-lab ## Bring-up benchmark: the product against a bare script, in one run
	@$(BIN)/python bench/bringup.py

.PHONY: bench-api
bench-api: setup apt-test ## What a request costs, against a bare handler, on SQLite and PostgreSQL
	@$(BIN)/python bench/api.py

.PHONY: clean
clean: down ## Also remove the environment, the data and the lab image
	@[ ! -x $(BIN)/gpuaas-lab ] || [ "$$(id -u)" != 0 ] || $(BIN)/gpuaas-lab down --image
	@rm -rf .venv var

##@ Set-up (done by the commands above)

.PHONY: setup
setup: .venv/ready ## The Python environment, pinned by hash

.venv/ready: requirements.lock $(foreach package,$(PACKAGES),$(package)/pyproject.toml)
	@echo "Setting up the Python environment…"
	@[ -x $(BIN)/python ] || python3 -m venv .venv || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@[ -x $(BIN)/uv ] || $(BIN)/python -m pip install -q uv==$$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)
	@$(BIN)/uv pip install -q --python $(BIN)/python --compile-bytecode --require-hashes -r requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation $(EDITABLE)
	@touch $@

.PHONY: lock
lock: ## Pin every dependency anew, by hash and without addresses
	@$(BIN)/uv pip compile tools/requirements.in --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --python-version 3.11 -q -o requirements.lock

.PHONY: apt-lab
apt-lab:
	@tools/apt-have $(APT_LAB)

.PHONY: apt-test
apt-test:
	@tools/apt-have $(APT_TEST)

.PHONY: node-tools
node-tools: core/tests/oidc/node_modules/ready ## The OpenID provider the tests sign in at, pinned by hash

core/tests/oidc/node_modules/ready: core/tests/oidc/package.json core/tests/oidc/pnpm-lock.yaml
	@command -v npm >/dev/null || { echo "npm is missing: install Node 20 or newer" >&2; exit 1; }
	@[ -x var/pnpm/node_modules/.bin/pnpm ] || npm install --silent --no-fund --no-audit --prefix var/pnpm pnpm@10
	@cd core/tests/oidc && ../../../var/pnpm/node_modules/.bin/pnpm install --silent --frozen-lockfile --ignore-scripts
	@touch $@

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
