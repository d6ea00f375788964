# Everything a person does with this repository. `make` lists it.
SHELL := /bin/bash
.DEFAULT_GOAL := help

BIN := .build
GO ?= go
# Packages of this module, without what only tools need.
PACKAGES := ./...

# NVIDIA's library is bound to symbol by symbol, when one is first called. Some
# compilers (Ubuntu's) bind all at the start by default, and berth would not start
# on a machine without that library.
export CGO_LDFLAGS ?= -O2 -g -Wl,-z,lazy
# NVIDIA's header has a screen full of these.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: help
help: ## List what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-zA-Z\/_-]*:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(BIN)/temporal frontend ## Build berth with its web interface, and Temporal's command line tool beside it
	$(GO) build -o $(BIN)/berth ./cmd/berth

$(BIN)/temporal: tools/temporal/go.mod tools/temporal/go.sum
	@echo "building Temporal's command line tool (2-3 minutes the first time)"
	cd tools/temporal && $(GO) build -o ../../$(BIN)/temporal github.com/temporalio/cli/cmd/temporal

$(BIN)/registry: tools/registry/go.mod tools/registry/go.sum
	@echo "building the registry that tests pull from (2-3 minutes the first time)"
	cd tools/registry && $(GO) build -o ../../$(BIN)/registry github.com/distribution/distribution/v3/cmd/registry

$(BIN)/docker-compose: tools/compose/go.mod tools/compose/go.sum
	@echo "building Docker Compose (2-5 minutes the first time)"
	cd tools/compose && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X github.com/docker/compose/v2/internal.Version=v2.40.3' -o ../../$(BIN)/docker-compose github.com/docker/compose/v2/cmd

.PHONY: frontend
frontend: ## Build the web interface where it changed, which the next build of berth embeds
	@scripts/frontend

.PHONY: demo
demo: ## Set up everything, run a real sweep, show the result, stop what was started
	@scripts/demo

.PHONY: dev
dev: build ## Run everything on this machine until Ctrl-C, with the examples' images built
	@scripts/need-postgres
	@scripts/docker-up
	@scripts/example-images || echo "the images of the examples are missing: their sweeps are refused until 'make images' works" >&2
	$(BIN)/berth dev

.PHONY: images
images: ## Build the images of the examples and of the tests
	@scripts/docker-up
	@scripts/base-image
	@scripts/example-images --all
	@scripts/test-image
	@scripts/flags-image

.PHONY: test
test: ## Set up what is missing and run every test
	@scripts/test

.PHONY: test/unit
test/unit: ## Run the tests that need neither Docker nor Temporal
	$(GO) test $(PACKAGES)

.PHONY: test/web
test/web: build images ## Test the web interface: its components, then the real binary in a browser
	@scripts/test-web

.PHONY: test/python
test/python: build ## Check the Python client (ruff, mypy), and test it against a real Berth
	@scripts/test-python

.PHONY: test/race
test/race: $(BIN)/temporal ## Run the tests that need no Docker under the race detector: packages that start goroutines (ALL=1: every package)
	@scripts/test-race

.PHONY: test/integration
test/integration: build images $(BIN)/registry ## Run the tests on real Docker and Temporal
	PATH="$(CURDIR)/$(BIN):$$PATH" $(GO) test -tags integration -count=1 -timeout 60m $(PACKAGES)

.PHONY: test/exports
test/exports: ## Let pandas read the tables that Berth exports, and compare event files with TensorBoard's own reader
	python=$$(scripts/python-env) && $$python -m pip install --quiet --disable-pip-version-check pyarrow==26.0.1
	BERTH_TEST_NO_SKIP=1 $(GO) test -tags nightly -count=1 -run '^(TestExport_PandasReadsTables|TestDecoder_ReadsWhatTensorBoardWrites)$$' ./internal/cli ./internal/agent/tfevents

.PHONY: test/compose
test/compose: build $(BIN)/docker-compose ## Run docker-compose.yml: sweeps, secrets, roles, second machine, backup, TLS (root; 8 minutes, half an hour the first time)
	@scripts/docker-up
	@scripts/base-image
	@scripts/example-images
	@scripts/test-image
	@scripts/compose-images
	PATH="$(CURDIR)/$(BIN):$$PATH" BERTH_TEST_NO_SKIP=1 $(GO) test -tags integration,compose -count=1 -timeout 30m -v -run '^TestCompose' ./internal/e2e

.PHONY: test/lost-replies
test/lost-replies: ## Play 10,000 worlds of killed workers and lost replies (SEEDS=, SEED= plays one again)
	RAPID_SEED=0 $(GO) test -run TestLostReplies -count=1 -timeout 30m ./internal/testkit/fault -seeds=$(or $(SEEDS),$(if $(SEED),1,10000)) -seed=$(or $(SEED),0)

.PHONY: test/chaos
test/chaos: build images ## Random sweeps under random faults, then the invariants (SEED=, DURATION=60s, RUNS=1 seeds in a row)
	PATH="$(CURDIR)/$(BIN):$$PATH" CHAOS_SEED=$(SEED) CHAOS_DURATION=$(DURATION) \
		$(GO) test -tags integration,nightly -count=$(or $(RUNS),1) -timeout 0 -v -run '^TestChaos$$' ./internal/e2e

.PHONY: dist
dist: ## Make what a release has in dist/: wheels, tarballs, the image, checksums (IMAGES=no leaves the image out)
	@scripts/dist

.PHONY: test/dist
test/dist: ## Install the wheel of dist/ into a new environment, and run a sweep on what it brings
	@scripts/test-dist

.PHONY: test/nightly
test/nightly: ## Run what takes long or draws its seeds: chaos, 10,000 worlds, compose, the race detector (SEEDS=5 runs of chaos)
	@scripts/test-nightly

.PHONY: bench/parallelism
bench/parallelism: ## Let Berth learn how many trials share simulated GPUs, and compare with the best that could be fixed (SEEDS=20)
	$(GO) test -tags nightly -run TestAdvise_ComesNearTheBest -count=1 -timeout 60m -v ./internal/scheduler/parallelism -seeds=$(or $(SEEDS),20) | grep -E 'of that|in the mean|^(ok|FAIL)'

.PHONY: test/gpu
test/gpu: ## Read this machine's GPUs through NVIDIA's library, and check what must hold of any
	$(GO) test -count=1 -tags gpu -run TestReal -v ./internal/agent/nvml

.PHONY: lint
lint: frontend ## Run shellcheck, golangci-lint, workflowcheck, eslint, prettier, and count phrases that are read twice
	@scripts/lint-shell
	@python3 scripts/plain_english.py
	export PATH="$$(scripts/need-node):$$PATH" && cd frontend && npm run --silent lint
	cd tools/lint && $(GO) build -o ../../$(BIN)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(BIN)/golangci-lint run --build-tags integration,compose,nightly
	cd tools && $(GO) build -o ../$(BIN)/workflowcheck go.temporal.io/sdk/contrib/tools/workflowcheck
	$(BIN)/workflowcheck ./workflows/...

.PHONY: generate
generate: ## Regenerate the code made from SQL and from the API's description
	cd tools && $(GO) build -o ../$(BIN)/sqlc github.com/sqlc-dev/sqlc/cmd/sqlc
	cd internal/store/postgres && ../../../$(BIN)/sqlc generate
	cd tools && $(GO) build -o ../$(BIN)/oapi-codegen github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen
	PATH="$(CURDIR)/$(BIN):$$PATH" $(GO) generate ./api/...
	python=$$(scripts/python-env) && $$python clients/python/generate.py

.PHONY: verify
verify: generate ## Fail when generated code is not what its source makes, or cgo is needed
	@git diff --exit-code -- api internal/store/postgres/dbsqlc clients/python/src/berth/models.py || { echo "generated code is stale: commit what 'make generate' made" >&2; exit 1; }
	$(GO) mod tidy -diff
	CGO_ENABLED=0 $(GO) build ./...

.PHONY: bench/overhead
bench/overhead: build images ## Compare a sweep of TensorFlow trials with a docker run loop of the same flags (ROUNDS=4)
	@scripts/bench-overhead

.PHONY: bench/wide
bench/wide: build images ## The same for 96 trials that sleep, 16 at once
	@scripts/bench-wide

.PHONY: bench/throughput
bench/throughput: build ## Run trials that do nothing through everything but containers (TRIALS=, TEMPORAL=memory|file|server)
	@scripts/bench-throughput

.PHONY: bench/latency
bench/latency: build images ## Time a place's next container, containers a second, the API at 500 requests/s, metric points a second
	PATH="$(CURDIR)/$(BIN):$$PATH" $(GO) test -tags integration -run '^$$' -bench . -benchtime 1x -timeout 20m ./internal/e2e
	$(GO) test -run '^$$' -bench BenchmarkPutMetrics -benchtime 1000x ./internal/store/postgres

.PHONY: bench/logs
bench/logs: build ## Run a trial that prints as fast as it can, and say what that costs its neighbour
	@scripts/test-image
	@scripts/bench-logs

.PHONY: bench/silent
bench/silent: ## Say what part of a core a worker takes for 100 trials that say nothing, for one that prints 300 lines a second, and for a line
	$(GO) test -run '^$$' -bench '^Benchmark(SilentTrials|PrintingTrial)$$' -benchtime 3x ./internal/testkit/runtimetest
	$(GO) test -run '^$$' -bench '^BenchmarkParse$$' ./internal/agent/metrics

.PHONY: bench/import
bench/import: images ## Compare the processor time of import keras, and of a fit with many small steps, with and without the shim (ROUNDS=10)
	@scripts/bench-import

.PHONY: bench/web
bench/web: build ## Time the web interface with 50,000 trials, and watch its memory while they change (MINUTES=5)
	@scripts/docker-up
	@bench/web/run

.PHONY: bench/search
bench/search: ## Compare a search with Optuna's default on tables of measured configurations (ALGORITHM=tpe, SEEDS=60)
	@bench/search/run

.PHONY: bench/workflow
bench/workflow: build images ## Search with 24 trials at once through the real workflow, and compare with a search that knows all at once (SEEDS=20)
	@bench/search/workflow

.PHONY: bench/memory
bench/memory: build images ## Run a sweep over 16 memory shapes, and say how well unmeasured ones were predicted
	@bench/memory/run

.PHONY: bench/suggest
bench/suggest: ## Time one suggestion of tpe and gp after 100 to 10,000 trials, with 24 open
	$(GO) test -run '^$$' -bench Suggest -count 3 ./internal/search

.PHONY: bench/stopping
bench/stopping: ## Run the rules of early stopping over measured learning curves: what each saves, and how often it loses the best run
	@bench/stopping/run

.PHONY: bench/digits
bench/digits: build images ## Compare auto with asha to random search without early stopping, over 48 TensorFlow trials
	@bench/digits/run

.PHONY: bench/stages
bench/stages: build images ## Compare TensorFlow trials that share stages with trials that do all themselves (EXAMPLE=digits-stages)
	@bench/stages/run

.PHONY: bench/bases
bench/bases: build images ## Search a head over four frozen networks at random and by auto, and compare container seconds (SEEDS="1 2 3")
	@bench/stages/bases

.PHONY: bench/scale
bench/scale: ## Time rounds and pages on a database with 700 waiting sweeps and a long history, and bound their statements (SCALE_TRIALS=200000)
	$(GO) test -run '^$$' -bench 'BenchmarkScale' -benchtime 5x -timeout 30m ./internal/store/postgres

.PHONY: bench/placement
bench/placement: ## Time placement decisions and leases through PostgreSQL
	$(GO) test -run '^$$' -bench 'BenchmarkDecide' -benchtime 10x ./internal/scheduler/packing
	$(GO) test -run '^$$' -bench 'BenchmarkPlace' -benchtime 5x ./internal/store/postgres

.PHONY: clean
clean: ## Remove what was built here (not the caches)
	rm -rf $(BIN) frontend/node_modules frontend/src/api/generated
	find frontend/dist -mindepth 1 -not -name .gitkeep -delete
