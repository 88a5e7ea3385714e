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
SOURCES := $(PACKAGES) tests bench tools
APT_LAB := systemd-container debootstrap iproute2 nftables openssh-client
APT_TEST := chromium-headless-shell docker-registry fish libfaketime openssh-server postgresql softhsm2 strace zsh
PNPM := var/pnpm/node_modules/.bin/pnpm
CONSOLE := core/src/gpuaas_core/console_files/index.html
STACK := $(BIN)/python -m gpuaas_lab.stack
export PYTHONDONTWRITEBYTECODE := # empty: compiled modules are kept, every start is faster

##@ The two commands

.PHONY: up
up: setup $(if $(filter no,$(LAB)),,apt-lab) $(if $(shell command -v npm),console,no-console) ## Set up, start everything, deploy a Slurm cluster, run a job. LAB=no: no hosts. PORT=8080
	@$(STACK) up --port $(PORT) $(if $(filter no,$(LAB)),--no-lab) $(if $(LISTEN),--listen $(LISTEN))

.PHONY: test
test: setup apt-lab apt-test node-tools console ## Everything: lint, types, contracts, unit, API, real hosts, real Slurm. ONLY=claims: one part
	@$(BIN)/python -m tests.everything $(if $(ONLY),--only '$(ONLY)')

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
check: setup apt-test node-tools console ## The inner loop: format, lint, types, import contracts, fresh contracts, fast tests
	@$(BIN)/python -m tests.everything --fast

.PHONY: format
format: setup console/node_modules/ready ## Format the code
	@$(BIN)/ruff format -q $(SOURCES) && $(BIN)/ruff check -q --fix $(SOURCES)
	@cd console && node_modules/.bin/biome check --write .

.PHONY: contracts
contracts: setup ## Generate contracts/ and the SDK's models from the code
	@$(BIN)/gpuaas-core contracts contracts && $(BIN)/python -m gpuaas_sdk.generate

.PHONY: soak
soak: setup apt-lab apt-test ## The proofs of make test repeated in full, hours in all. ONLY=cycles: one part; ONLY=help lists the parts
	@$(BIN)/python -m tests.soak $(if $(ONLY),--only '$(ONLY)')

.PHONY: bench
bench: setup apt-lab ## Bring-up benchmark: the product against a bare script, in one run
	@$(BIN)/python bench/bringup.py

.PHONY: bench-api
bench-api: setup apt-test ## CPU per request next to a hello-world handler and to the same SQL as prepared text, on SQLite and PostgreSQL
	@$(BIN)/python bench/api.py

.PHONY: bench-idle
bench-idle: setup apt-test ## CPU of core and PostgreSQL with 1,000 idle machines, 1,000 idle projects and 200 open streams
	@$(BIN)/python bench/idle.py

.PHONY: bench-growth
bench-growth: setup apt-test ## Whether a request costs more on a store that is ten times as large, on PostgreSQL
	@$(BIN)/python bench/growth.py

.PHONY: bench-console
bench-console: setup apt-test console ## What the console weighs and how it feels, with an instance of 200 members
	@$(BIN)/python bench/console.py

.PHONY: console
console: $(CONSOLE) ## Build the web console; the core serves it

.PHONY: shots
shots: setup apt-test console ## Pictures of every page of the console, light and dark, wide and narrow, into var/shots
	@$(BIN)/python -m tests.browser.shots var/shots

.PHONY: clean
clean: down ## Also remove the environment, the data and the lab image
	@[ ! -x $(BIN)/gpuaas-lab ] || [ "$$(id -u)" != 0 ] || $(BIN)/gpuaas-lab down --image
	@rm -rf .venv var console/node_modules $(dir $(CONSOLE))

##@ Set-up (done by the commands above)

.PHONY: hooks
hooks: setup ## Optional: run the quick checks of .pre-commit-config.yaml before every commit
	@printf '#!/bin/sh\nexec make -s quick\n' > "$$(git rev-parse --git-path hooks)/pre-commit"
	@chmod +x "$$(git rev-parse --git-path hooks)/pre-commit" && echo "Installed. Remove it with: rm $$(git rev-parse --git-path hooks)/pre-commit"

.PHONY: quick
quick: setup ## Format, lint, import contracts and house report: seconds, no tests
	@$(BIN)/ruff format --check -q $(SOURCES) && $(BIN)/ruff check -q $(SOURCES)
	@$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/python tools/house_report.py --quiet

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
lock: ## Pin every dependency again, by hash and without addresses
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

core/tests/oidc/node_modules/ready: core/tests/oidc/package.json core/tests/oidc/pnpm-lock.yaml | $(PNPM)
	@$(PNPM) --dir core/tests/oidc install --silent --frozen-lockfile --ignore-scripts
	@touch $@

console/node_modules/ready: console/package.json console/tools/types/package.json console/pnpm-lock.yaml | $(PNPM)
	@echo "Fetching what the console is built with…"
	@$(PNPM) --dir console install --silent --frozen-lockfile --ignore-scripts
	@touch $@

$(PNPM):
	@command -v npm >/dev/null || { echo "npm is missing: install Node 20 or newer" >&2; exit 1; }
	@npm install --silent --no-fund --no-audit --prefix var/pnpm pnpm@10

$(CONSOLE): console/node_modules/ready console/index.html console/vite.config.ts contracts/openapi.json contracts/actions.json contracts/lifecycles.json contracts/events.json contracts/adapter-detail.schema.json contracts/permissions.json contracts/errors.json $(shell find console/src console/public -type f ! -name '*.gen.ts')
	@echo "Building the console…"
	@cd console && node tools/types/make.mjs && node_modules/.bin/vite build --logLevel warn

.PHONY: no-console
no-console:
	@echo "There is no npm here, so the console is not built; CLI and API work. Install Node 20 and run make up again."

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
