# HeteroFlow. `make help` lists what there is to make.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BIN     := bin

# Packages whose tests need no cluster.
UNIT := $(shell $(GO) list ./... 2>/dev/null | grep -v /test/e2e)
TOOL := $(GO) tool -modfile=tools.mod

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build heteroflow-scheduler into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/heteroflow-scheduler ./cmd/scheduler

.PHONY: controlplane
controlplane: ## build the control plane that demo and e2e run on (about 12 min the first time, then cached)
	@./test/step.sh "control plane" ./test/controlplane/build.sh

.PHONY: demo
demo: controlplane ## place some 200 pods on a real control plane and show where they went; DEMO_EXIT=1 ends it afterwards
	@CGO_ENABLED=0 $(GO) run ./test/demo $(if $(filter 1,$(DEMO_EXIT)),--exit)

.PHONY: test
test: ## all tests: unit with the race detector, the chart, then e2e
	@./test/step.sh "unit tests (-race)" $(MAKE) --no-print-directory unit
	@./test/step.sh "chart" $(MAKE) --no-print-directory chart
	@$(MAKE) --no-print-directory controlplane
	@./test/step.sh "e2e" $(MAKE) --no-print-directory e2e

.PHONY: unit
unit: ## unit tests with the race detector
	$(GO) test -race -timeout 10m $(UNIT)

.PHONY: test-short
test-short: ## unit tests without the race detector and without the longest ones: seconds
	CGO_ENABLED=0 $(GO) test -short -timeout 2m $(UNIT)

.PHONY: chart
chart: ## render and lint the Helm chart with many values
	cd test/chart && CGO_ENABLED=0 $(GO) test -count=1 ./...

.PHONY: e2e
e2e: controlplane ## scenarios through a stock kube-scheduler on a real API server
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 35m -v ./test/e2e/...

DURATION ?= 5m

.PHONY: chaos
chaos: controlplane ## pods come and go for DURATION while everything around the scheduler goes wrong; the last line is the result
	@CGO_ENABLED=0 $(GO) run ./test/chaos/cmd --duration $(DURATION) $(if $(SEED),--seed $(SEED))

.PHONY: soak
soak: KILLS ?= 100
soak: ## pods of many tenants come and go for DURATION through the engine and the ledger while all rules change; then the leader is killed KILLS times in preemptions on a real control plane (100: about 15 min; 0: not)
	@CGO_ENABLED=0 $(GO) run ./test/soak/cmd --duration $(DURATION) $(if $(SEED),--seed $(SEED))
	@if [ "$(KILLS)" != 0 ]; then $(MAKE) --no-print-directory controlplane && \
		CGO_ENABLED=0 $(GO) test -count=1 -timeout 90m -v -run '^TestRandomKillsInPreemptions$$' ./test/e2e -kills $(KILLS); fi

.PHONY: scenario
scenario: controlplane ## the same tasks by several configurations, with cards that warm up: whole cards, heat, racks; the last lines are the figures
	@CGO_ENABLED=0 $(GO) run ./test/scenario/cmd --commit $(VERSION) $(if $(NODES),--nodes $(NODES)) $(if $(RUNS),--runs $(RUNS)) \
		$(if $(LENGTH),--length $(LENGTH)) $(if $(LOAD),--load $(LOAD)) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

.PHONY: bench
bench: ## benchmarks in process
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem ./pkg/... ./test/bench

.PHONY: bench-e2e
bench-e2e: NODES ?= 1000
bench-e2e: PODS ?= 3000
bench-e2e: ROUNDS ?= 3
bench-e2e: controlplane ## pods a second on a real control plane, without an extender and with ours: PODS on NODES, ROUNDS times (3000, 1000, 3: about 18 min), or of the configurations ONLY
	@CGO_ENABLED=0 $(GO) run ./test/bench/e2e/cmd --nodes $(NODES) --pods $(PODS) --rounds $(ROUNDS) $(if $(ONLY),--only $(ONLY)) --commit $(VERSION)

.PHONY: bench-scale
bench-scale: NODES ?= 5000
bench-scale: PODS ?= 40000
bench-scale: controlplane ## memory, start, and /filter under a storm of events, with NODES nodes and PODS pods on a real API server (some 10 min)
	@CGO_ENABLED=0 $(GO) run ./test/bench/scale/cmd --nodes $(NODES) --pods $(PODS)

.PHONY: quality
quality: export PLOT ?= $(BIN)/quality.svg
quality: ## how much of the cards gets put to use: a public trace of GPU pods (OPENB_DIR) replayed by ours and by published policies (TRACES, SEEDS, POLICIES, POLICY, PLOT); OVER_TIME=1: pods come and go
	@mkdir -p $(BIN) && CGO_ENABLED=0 $(GO) run ./cmd/heteroflow-sim

.PHONY: quality-e2e
quality-e2e: controlplane ## a part of that trace (NODES, 300; TRACE, SEED) through a stock kube-scheduler and our extender, beside the simulator on the same pods: minutes
	@CGO_ENABLED=0 $(GO) run ./test/quality/cmd --commit $(VERSION) $(if $(OPENB_DIR),--openb $(OPENB_DIR)) \
		$(if $(TRACE),--trace $(TRACE)) $(if $(NODES),--nodes $(NODES)) $(if $(SEED),--seed $(SEED))

.PHONY: generate
generate: ## write all generated files anew
	$(GO) generate ./...
	cp examples/kube-scheduler.yaml charts/heteroflow/files/kube-scheduler.yaml
	$(GO) test ./pkg/metrics ./pkg/codec -run 'TestDocuments|Golden' -update
	cd test/chart && CGO_ENABLED=0 $(GO) test -run TestDocuments . -update

.PHONY: verify
verify: ## fail when a generated file or go.mod is out of date
	@./test/verify.sh

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd pkg test)" || { echo "gofmt would change:"; gofmt -l cmd pkg test; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	cd test/chart && $(GO) vet ./... && $$(cd ../.. && $(TOOL) -n staticcheck) ./...

.PHONY: clean
clean: ## remove what was built here
	rm -rf $(BIN)
