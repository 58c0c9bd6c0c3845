# What a person does with this repository. Everything is set up by the targets themselves: they need Go,
# make and the module proxy, nothing else.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

export GOWORK := off
# The tag makes the storage engine compress in Go: its C library alone would take a tenth of the first build.
export GOFLAGS ?= -buildvcs=false -tags=pebblegozstd

# The modules whose tests make test runs. peers has targets of its own: it brings in other people's systems.
MODULES := . exercises playground $(patsubst %/go.mod,%,$(wildcard interop/*/go.mod))
TOOL    := go tool -modfile=$(CURDIR)/tools/go.mod
FUZZTIME ?= 10s
BENCH    ?= .
SHORT    ?=
TURNS    ?= 5
LOAD     ?= 500
FLAP     ?= 5000
AT_ONCE  ?= 1
# The nodes of the fake kubelet have no heartbeats: with the default grace period, they would be taken for dead.
KCM_FLAGS := --kubeconfig=/tmp/kubeconfig --leader-elect=false --secure-port=0 --use-service-account-credentials \
             --node-monitor-grace-period=8760h

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the flyball binary into bin/, without the tables of a debugger
	go build -ldflags '-s -w' -o bin/flyball ./cmd/flyball

# The container images: each one's name and package. Their tag is written in deploy/version alone.
ALL_IMAGES := flyball=./cmd/flyball items=./examples/operators/items ipam-operator=./examples/operators/ipam \
              project-operator=./examples/operators/projects ci-controllers=./examples/operators/ci
VERSION := $(shell sed -n 's/.*&version \([^ }]*\).*/\1/p' deploy/version/kustomization.yaml)
TAG     ?= $(VERSION)
ONLY    ?= %
CERTIFICATES ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))

.PHONY: image
image: ## container images of flyball and of the operators in examples, with docker (ONLY=flyball: that one)
	@docker version >/dev/null 2>&1 || { echo "make image needs docker, and permission to use it: docker version fails" >&2; exit 1; }
	@[ -n "$(CERTIFICATES)" ] || { echo "no certificates of public authorities found: CERTIFICATES=file names some" >&2; exit 1; }
	@[ -n "$(filter $(ONLY)=%,$(ALL_IMAGES))" ] || { echo "there is no image $(ONLY)" >&2; exit 1; }
	@for i in $(filter $(ONLY)=%,$(ALL_IMAGES)); do name=$${i%%=*} dir=bin/image/$${i%%=*}; \
	  rm -rf $$dir; mkdir -p $$dir; cp $(CERTIFICATES) $$dir/ca-certificates.crt; \
	  CGO_ENABLED=0 GOOS=linux go build -trimpath -buildvcs=auto -ldflags '-s -w -X main.version=$(VERSION)' -o $$dir/program $${i#*=}; \
	  chmod 644 $$dir/ca-certificates.crt; TZ=UTC touch -t 197001010000 $$dir/*; \
	  docker build -q -f Dockerfile -t $$name:$(TAG) --build-arg TITLE=$$name --build-arg VERSION=$(VERSION) \
	    --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || true) $$dir >/dev/null; \
	  echo "$$name:$(TAG)"; done

.PHONY: test-page
test-page: playground ## test the page of a running manager, and that of flyball learn, in Chromium (UPDATE=1: write the pictures in docs/images)
	@command -v chromium chromium-browser google-chrome >/dev/null || { echo "make test-page needs Chromium: none of chromium, chromium-browser and google-chrome is in the PATH; on Debian: apt-get install chromium" >&2; exit 1; }
	cd inspect/page/browser && go vet ./... && go test -count 1 -timeout 30m -v . $(if $(UPDATE),-args -update)

.PHONY: test-images
test-images: ## build every image and run it as a Pod would, with docker
	FLYBALL_IMAGES=1 go test -count 1 -run 'TestImage$$' ./cmd/flyball ./examples/operators/...

.PHONY: demo
demo: ## a Deployment end to end on our own pipeline, in this process
	go run ./cmd/flyball demo

.PHONY: learn
learn: ## where you are in the tasks of docs/book, and what to do next (HINT=1: a hint; TASK=07a: that task; WATCH=1: again on every save; RACE=0: without the race detector; CAPSTONE=1: your parts as one controller; REPORT=1: the results of all tasks as JSON; RESET=07a: that task as it was given, with what you wrote beside it)
	@cd exercises && go build -o ../bin/learn ./internal/learn && exec ../bin/learn $(if $(TASK),-task '$(TASK)') $(if $(HINT),-hint '$(HINT)') $(if $(WATCH),-watch) $(if $(RACE),-race=$(RACE)) $(if $(CAPSTONE),-capstone $(CAPSTONE)) $(if $(REPORT),-report) $(if $(RESET),-reset '$(RESET)')

# The packages that make test and make race test, in module m. The tests in the folders of tasks fail until a reader has
# solved them, so exercises/internal/tasks tests every task unsolved and solved. make check vets all of them.
PACKAGES = $$([ $$m = exercises ] && echo ./internal/... || echo ./...)

.PHONY: test
test: ## test every module but peers
	@for m in $(MODULES); do echo "== test $$m"; (cd $$m && go test -vet=off -timeout 15m $(PACKAGES)); done

.PHONY: race
race: ## the same tests with the race detector
	@for m in $(MODULES); do echo "== race $$m"; (cd $$m && go test -race -vet=off -timeout 15m $(PACKAGES)); done

.PHONY: test-kit
test-kit: ## the tests that build programs and projects, and use them as a person does
	@FLYBALL_KIT=1 go test -vet=off -timeout 30m $$(git grep -l -e '/internal/kit"' -e '/deploy/deploytest"' -- '*_test.go' ':!peers' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
	@cd exercises && FLYBALL_KIT=1 go test -vet=off -run 'TestWrong$$' ./internal/tasks
	@$(MAKE) -s playground

.PHONY: quick
quick: ## format, vet and test the packages that differ from BASE (HEAD, or its parent on a clean tree), and the rules of the tree
	@tools/quick $(BASE)

.PHONY: generate
generate: ## write what controller-gen makes of the types in examples and in the project of flyball init
	go generate ./examples/... ./cmd/flyball/scaffold

.PHONY: generated
generated: # fails if generate changes a file
	@sums() { git ls-files --cached --others --exclude-standard examples cmd/flyball/scaffold/project | xargs cksum 2>/dev/null || true; }; before=$$(sums); $(MAKE) -s generate; \
	  if ! diff <(echo "$$before") <(sums); then echo "these files were not what make generate writes; they are now"; exit 1; fi

.PHONY: check
check: generated ## formatting, vet, staticcheck, the rules of the tree, generated files, tidy modules
	@unformatted=$$($(TOOL) gofumpt -l $$(git ls-files --cached --others --exclude-standard '*.go' | grep -v /testdata/)); \
	  if [ -n "$$unformatted" ]; then echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; fi
	@cd tools && go build -o ../bin/lint ./lint
	@for m in $(MODULES) exercises/13-capstone inspect/page/browser; do echo "== check $$m"; (cd $$m && $(CURDIR)/bin/lint ./... && go mod tidy -diff); done
	go test ./internal/archtest

.PHONY: map
map: ## what a reader of the path has to hold: for each package its types, what only forwards, and the longest ways to a change of state
	@cd tools && go build -o ../bin/map ./map
	@bin/map

.PHONY: api
api: ## write the lists of public names in docs/api anew
	go test ./internal/archtest -run 'TestAPI$$' -count 1 -update

.PHONY: cli
cli: ## write docs/cli.md from the help of the commands
	go test ./cmd/flyball -run 'TestCLI$$' -count 1 -args -update

.PHONY: fmt
fmt: ## format every Go file
	$(TOOL) gofumpt -w $$(git ls-files --cached --others --exclude-standard '*.go' | grep -v /testdata/)

.PHONY: bench
bench: ## our parts beside client-go's and controller-runtime's, in processes and in turns, as tables in docs/performance.md and README.md (10 minutes; BENCH=regexp: only some; SHORT=1: try all, write nothing)
	cd peers && go run ./bench/cmd/parts -only '$(BENCH)' $(if $(SHORT),-short -turns 1,-page ../docs/performance.md)
	$(if $(SHORT),,$(MAKE) figures)

.PHONY: figures
figures: ## write README's table of figures from docs/performance.md
	go test ./internal/archtest -run 'TestFigures$$' -count 1 -update

.PHONY: bench-loop
bench-loop: ## controllers on Flyball and on controller-runtime, in processes and in turns, as tables in docs/performance.md (10 minutes)
	cd peers && go run ./bench/loop/cmd/loop -page ../docs/performance.md

.PHONY: bench-cluster
bench-cluster: ## kube-controller-manager's controllers, and operators on controller-runtime, beside ours: on a kube-apiserver, in processes and TURNS (5) turns, as tables in docs/performance.md (90 minutes; SHORT=1: try all, write nothing)
	cd peers && go run ./bench/cluster/cmd/cluster $(if $(SHORT),-scale 0.02 -turns 1,-turns $(TURNS) -page ../docs/performance.md)

.PHONY: controlplane
controlplane: ## build and start etcd, kube-apiserver and kube-controller-manager on loopback (first build: about 10 minutes)
	cd peers && go run ./upstream/cmd/controlplane

.PHONY: controllermanager
controllermanager: ## build kube-controller-manager, and print how it runs behind flyball serve (first build: some minutes)
	@cd peers && dir=$$(go run ./upstream/cmd/controlplane -build kube-controller-manager) && \
	  printf 'flyball serve --controllers= --namespaces=false --kubeconfig /tmp/kubeconfig\n%s/kube-controller-manager %s\n' "$$dir" '$(KCM_FLAGS)'

.PHONY: programs
programs: ## an hour of kube-controller-manager, kube-scheduler and kubectl behind flyball serve: no errors, and no growth
	cd peers && FLYBALL_PROGRAMS=1h go test -vet=off -count 1 -run 'TestProgramsBehindFlyball$$' -timeout 2h -v ./programs

.PHONY: kind
kind: ## with kind and a network: a cluster with the manager deployed in it, the demo's story on it, torn down (KEEP=1: not)
	@docs/kind/story.sh

.PHONY: node
node: ## a real node without a registry, in a docker container, with flyball manager deployed (first build: up to half an hour)
	cd peers && go run ./node/cmd/node

.PHONY: test-node
test-node: ## the manager and the operators on that node, under traffic and faults; skipped without a docker engine (UPDATE=1: write what they show in docs/kind)
	@if ! docker version >/dev/null 2>&1; then echo "make test-node is skipped: it needs a docker engine, and docker version fails"; exit; fi; \
	set -x; cd peers; go vet ./node/...; export FLYBALL_NODE=1; \
	go test -count 1 -run 'TestBuild$$' -timeout 0 -v ./node; \
	go test -count 1 -skip 'TestBuild$$' -timeout 30m -v ./node $(if $(UPDATE),-args -update)

.PHONY: test-node-conformance
test-node-conformance: ## Kubernetes' own e2e specs on two such nodes, with kube-controller-manager's controllers and with ours in their place; skipped without a docker engine (SPECS=regexp: only those; UPDATE=1: write the result in docs/kind)
	@if ! docker version >/dev/null 2>&1; then echo "make test-node-conformance is skipped: it needs a docker engine, and docker version fails"; exit; fi; \
	set -x; cd peers; go vet ./node/...; export FLYBALL_NODE=1 FLYBALL_CONFORMANCE=1; \
	FLYBALL_SPECS='$(SPECS)' go test -count 1 -run 'TestConformance$$' -timeout 5h -v ./node $(if $(UPDATE),-args -update)

.PHONY: test-peers
test-peers: ## test against the real control plane (builds it first: about 10 minutes)
	cd peers && go vet ./... && FLYBALL_KIT=1 go test -timeout 60m ./...
	cd peers/multicluster && go vet ./... && go test ./...
	cd peers/simulated && go vet ./... && go test ./...
	cd peers/playground && go vet ./... && go test ./...
	cd peers/suites && go vet ./... && go test ./...

.PHONY: test-suites
test-suites: ## controller-runtime's own test suites on localapi and kube-apiserver, with its parts and with ours, as tables in docs (test-peers: the fast ones, unmodified, on localapi)
	cd peers/suites && go vet ./... && FLYBALL_SUITES=all go test -count 1 -timeout 90m

.PHONY: test-integration
test-integration: ## Kubernetes' own integration tests: those of controllers with ours, and those of its API server on localapi, as tables in docs (40 minutes)
	cd peers && FLYBALL_INTEGRATION=1 go test -count 1 -parallel 3 -timeout 90m -v ./integration

.PHONY: test-conformance
test-conformance: ## Kubernetes' own conformance tests, those that need no container, on flyball serve, alone and with kube-controller-manager and kube-scheduler, as a table in docs/localapi.md (first build: about 10 minutes; SPECS=regexp: only those)
	cd peers && go run ./upstream/cmd/controlplane -build agnhost e2e.test ginkgo kube-controller-manager kube-scheduler kubectl
	cd peers && FLYBALL_CONFORMANCE=1 FLYBALL_SPECS='$(SPECS)' go test -vet=off -count 1 -run 'TestConformance$$' -timeout 3h -v ./programs

.PHONY: test-operators
test-operators: ## other people's operators: their suites on kube-apiserver and localapi, with their parts and ours, as a table in docs/localapi.md; AT_ONCE (1) programs run at once (some hours)
	cd peers && FLYBALL_OPERATORS=build go test -count 1 -run 'TestOperators$$' -parallel 1 -timeout 2h ./others
	cd peers && FLYBALL_OPERATORS=1 go test -count 1 -run 'TestOperators$$' -parallel $(AT_ONCE) -timeout 4h -v ./others

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (default 10s) each
	@go list -f '{{.Dir}}' ./... | while read -r dir; do \
	  { grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go 2>/dev/null || true; } | awk '{print $$2}' | while read -r f; do \
	    echo "== $$dir $$f"; (cd "$$dir" && go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) .); done; done

.PHONY: soak
soak: ## ten minutes of everything an informer meets, at 100,000 objects, in virtual time
	FLYBALL_SOAK=10m go test -run TestSoak -timeout 30m -v ./informer

.PHONY: children
children: ## 11,000 lives of a controller that must never have two children, whatever happens to watch and answers
	FLYBALL_CHILD_RUNS=1000 go test -count 1 -run 'TestExactlyOneChild$$' -timeout 1h -v ./reconcile

.PHONY: chaos
chaos: ## 1,000 seeds of two processes of one lease to which everything happens that may, and an operator that must get all right in the end
	FLYBALL_CHAOS_SEEDS=1000 go test -count 1 -run 'TestChaos$$' -timeout 3h ./manager | grep -vE '^[EIW][0-9]{4} '

.PHONY: lease
lease: ## two managers of one lease whose leader is stopped, killed, cut off or on another clock: 200 seeds in virtual time, 200 with processes
	FLYBALL_SEEDS=200 FLYBALL_RIVALS=200 go test -count 1 -run 'TestNoWriteIsAcceptedAfterTheLeasePassedOn|TestProcessesOfOneLease' -timeout 90m -v ./manager | grep -vE '^[IEW][0-9]{4} '

.PHONY: kill
kill: ## kill -9 flyball manager in the middle of 100 rollouts, against the real API server
	cd peers && FLYBALL_KILLS=100 go test -run 'TestKill$$' -timeout 60m -v ./differential

.PHONY: kill-store
kill-store: ## kill -9 a process that writes to a store on disk, 200 times; fail every single operation of a disk, in four ways
	FLYBALL_KILLS=200 FLYBALL_FAULTS=all go test -count 1 -run 'TestKilled$$|TestFaults$$' -timeout 30m -v ./localapi/storage/pebble

.PHONY: idle
idle: ## ten minutes with 500 Deployments and nothing to do, and a restart: no writes, on the real API server
	cd peers && FLYBALL_IDLE=10m go test -run 'TestIdle$$' -timeout 60m -v ./differential

.PHONY: load
load: ## what LOAD (500) Deployments of 10 pods cost: kube-controller-manager's controllers and ours, as a table
	cd peers && FLYBALL_LOAD=$(LOAD) go test -count 1 -run 'TestLoad$$' -timeout 3h -v ./differential

.PHONY: flap
flap: ## what it costs to keep the Endpoints of FLAP (5000) pods that flap behind one Service: theirs and ours, as a table
	cd peers && FLYBALL_FLAP=$(FLAP) go test -count 1 -run 'TestFlap$$' -timeout 1h -v ./differential

.PHONY: fleet
fleet: ## fleets at full size: 500 clusters, 50 rounds of 100, replicas that fail in 200 seeded runs; what an idle cluster costs beside multicluster-runtime
	FLYBALL_FLEET_CLUSTERS=500 go test -count 1 -run 'TestManyClustersJoin$$' -timeout 10m -v ./multicluster
	FLYBALL_FLEET_CLUSTERS=100 FLYBALL_FLEET_ROUNDS=50 go test -count 1 -run 'TestJoiningAndLeavingDoesNotLeak$$' -timeout 15m -v ./multicluster
	FLYBALL_FLEET_SEEDS=200 go test -count 1 -race -run 'TestRandomFleets$$' -timeout 60m ./multicluster
	FLYBALL_FLEETS=200 FLYBALL_REAL_FLEETS=50 FLYBALL_FLEET_PROCESSES=20 go test -count 1 -run 'TestNoTwoWriters|TestProcessesOfOneFleet' -timeout 90m -v ./multicluster/shard | grep -vE '^[IEW][0-9]{4} '
	cd peers/multicluster && FLYBALL_CLUSTERS=500 go test -count 1 -v ./...

.PHONY: release
release: ## set VERSION in the modules, images and changelog, commit it and make the tags; push nothing
	@[ "$(origin VERSION)" = "command line" ] || { echo "say which version: make release VERSION=v0.1.0" >&2; exit 2; }
	@cd tools && go build -o ../bin/release ./release
	@bin/release '$(VERSION)'

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: binaries
binaries: ## flyball for PLATFORMS in bin/binaries, with checksums and bills of materials
	@rm -rf bin/binaries; mkdir -p bin/binaries
	@for p in $(PLATFORMS); do echo "$$p"; file=bin/binaries/flyball_$${p/\//_}; [ $${p%/*} != windows ] || file=$$file.exe; \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -buildvcs=true -ldflags '-s -w' -o $$file ./cmd/flyball; done
	@cd tools && go build -o ../bin/release ./release
	@bin/release -describe bin/binaries

.PHONY: release-check
release-check: ## cut a release in a clone, publish nothing, and use it from modules elsewhere (4 minutes)
	@cd tools && go build -o ../bin/release ./release
	@bin/release -check $(if $(KEEP),-keep)

.PHONY: docs
docs: ## check that what the docs link, show and name exists, and that the book shows what its programs do
	go test -run 'TestDoc' -v ./internal/archtest
	go test ./docs/book/...
	cd exercises && go test ./internal/...

.PHONY: book
book: playground ## render docs and the book as HTML into bin/book, and the book as EPUB
	go run ./cmd/flyball learn --dir . --output bin/book

.PHONY: playground
playground: ## build the playground into bin/book/try: the demo in a browser tab, with a terminal and your own controller
	cd playground && go run ./build -o $(CURDIR)/bin/book/try

.PHONY: slides
slides: book ## the figures of the book as slides, to be shown or printed
	@echo bin/book/docs/book/slides.html

.PHONY: book-update
book-update: ## write the traces, tables and figures of docs/book anew
	go test $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./docs/book/...) -count 1 -update
