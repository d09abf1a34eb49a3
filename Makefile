# What people run:  make demo · make build · make test
# Everything the tests need is put into ignored folders of this repository; see scripts/setup.

GO              ?= go
GOLANGCI        := .tools/bin/golangci-lint
GOLANGCI_MODULE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.14.0
DEADCODE        := .tools/bin/deadcode
DEADCODE_MODULE := golang.org/x/tools/cmd/deadcode@v0.52.0
ACTIONLINT      := .tools/bin/actionlint
ACTIONLINT_MODULE := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULN_MODULE   := golang.org/x/vuln/cmd/govulncheck@v1.8.0
# Names under which the binary is known; each is linked once its command exists.
NAMES           := fit-harness:harness fit-eval:harness fit-trace:trace fit-benchmark:benchmark fit-selfedit:selfedit subq:versus
FUZZTIME        ?= 20s
TESTFLAGS       ?=
# One set of flags for the program, its tests and the linters: what one of them has compiled serves the others, in every clone.
# Only the race detector needs C.
export GOFLAGS     := $(strip -trimpath $(GOFLAGS))
export CGO_ENABLED := 0
# Linking tests without symbols and tables for debuggers takes half the time; go vet is a part of lint. Tests wait for other programs a third
# of their time, so in each of two halves one package more is tested than there are processors.
TEST            := $(GO) test -vet=off -ldflags=-s -p $(shell echo $$((1 + $$(getconf _NPROCESSORS_ONLN))))
RACE_TEST       := CGO_ENABLED=1 $(TEST) -race

.PHONY: build demo test check lint vet unit race fuzz bench soak vuln setup clean deps web pictures man release

# A program that the linker has just written starts an eighth slower than a copy of it, which users install. The copy is replaced only by
# another program, so that results of tests that run it stay valid.
build:
	@mkdir -p bin
	$(GO) build -buildvcs=auto -ldflags "-s -w" -o bin/.linked ./cmd/fit
	@cmp -s bin/.linked bin/fit || { cp bin/.linked bin/.copied && mv bin/.copied bin/fit; }
	@for pair in $(NAMES); do \
	  if bin/fit $${pair#*:} --help 2>/dev/null | grep -q "^  fit $${pair#*:}"; then ln -sf fit bin/$${pair%%:*}; else rm -f bin/$${pair%%:*}; fi; \
	done

demo: build
	bin/fit demo

# What go vet looks for, lint does too.
test: setup lint unit

vet:
	$(GO) vet ./...

lint: $(GOLANGCI)
	$(GOLANGCI) run ./...

# The first layer: packages whose tests start no program, so that a mistake in them shows within two minutes. A convention checks the list.
# Those whose goroutines share something are tested with the race detector; readers of files and streams, and arithmetic, are tested as they are
# built for users, because the detector would make them up to ten times slower.
PURE_RACE  := internal/bridge internal/bridge/channel internal/bridge/server internal/cli/console internal/egress internal/github internal/jsonlines internal/memo internal/retry \
	internal/scratch internal/gateway/calls internal/model internal/model/wire internal/query/export internal/query/sql ledger trace
PURE_PLAIN := internal/atomicfile internal/display internal/document internal/evidence internal/jsonenc internal/jsontape internal/lazyregexp \
	internal/profile internal/render internal/report internal/report/failure internal/report/versus internal/skill internal/treatment price redact session stats
# The second layer starts programs: agents, sandboxes, containers, browsers.
# Not the fleet: the NATS server reads its options without its lock while a hub applies new keys, and the detector stops the tests for it.
RACE := agent/events internal/agent internal/agent/acp internal/agent/builtin internal/agent/command internal/agent/http internal/experiment \
	internal/experiment/control internal/experiment/local internal/experiment/simulate internal/gateway internal/harness/... internal/judge internal/model/scripted/... internal/model/vendortest internal/query internal/query/internal/... \
	internal/sandbox/... internal/view internal/workspace
# Some tests of these do less with the detector, which they would keep busy for minutes; they are tested without it as well.
TWICE := internal/gateway internal/harness internal/query/internal/scan
unit: build
	@echo "layer 1: tests that start no program"
	@$(MAKE) --no-print-directory -j2 pure-race pure-plain
	@echo "layer 2: tests that start programs: agents, sandboxes, containers, browsers"
	@$(MAKE) --no-print-directory -j2 unit-race unit-plain

# Halves run at once, so that one works while the other waits.
.PHONY: pure pure-race pure-plain unit-race unit-plain
pure: pure-race pure-plain
pure-race:
	$(RACE_TEST) -timeout 10m $(TESTFLAGS) $(PURE_RACE:%=./%)
pure-plain:
	$(TEST) -timeout 10m $(TESTFLAGS) $(PURE_PLAIN:%=./%)
unit-race:
	$(RACE_TEST) -timeout 30m $(TESTFLAGS) $(RACE:%=./%)
# The packages of test/ take longest and start first.
unit-plain:
	$(TEST) -timeout 30m $(TESTFLAGS) ./test/... $(TWICE:%=./%) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(RACE:%=./%) $(PURE_RACE:%=./%) $(PURE_PLAIN:%=./%))")

race: build
	$(RACE_TEST) -timeout 60m $(TESTFLAGS) ./...

setup: $(GOLANGCI) $(DEADCODE) $(ACTIONLINT)
	scripts/setup

$(GOLANGCI): Makefile
	GOBIN=$(CURDIR)/.tools/bin $(GO) install $(GOLANGCI_MODULE)
	@touch $@

$(DEADCODE): Makefile
	GOBIN=$(CURDIR)/.tools/bin $(GO) install $(DEADCODE_MODULE)
	@touch $@

$(ACTIONLINT): Makefile
	GOBIN=$(CURDIR)/.tools/bin $(GO) install $(ACTIONLINT_MODULE)
	@touch $@

vuln:
	$(GO) run $(GOVULN_MODULE) ./...

# Every fuzz target for a while, one after the other.
fuzz:
	scripts/fuzz $(FUZZTIME)

bench: bench-start bench-run bench-redact bench-spawn bench-trace bench-session bench-evidence bench-benchmark bench-bus bench-versus bench-judge bench-workspace bench-gateway bench-dataset bench-container bench-acp bench-treatment bench-results bench-bridge

# What takes too long for make test: everything with every agent, every team of theirs, and sessions of each that are killed forty times.
soak:
	FIT_SOAK=1 $(GO) test ./internal/harness ./test/crash -count=1 -timeout 30m -run 'Killed|WhateverHappens' -v
	FIT_SOAK=1 $(GO) test ./internal/cli ./internal/cli/benchmarkcli ./internal/cli/bridgecli -count=1 -timeout 30m -run 'KilledAt|ShippedFamilies' -v
	FIT_SOAK=1 $(GO) test ./redact -count=1 -timeout 30m -run NoSecretSurvives -v
	FIT_SOAK=1 $(GO) test ./internal/gateway -count=1 -timeout 30m -run Parallel -v
	FIT_SOAK=1 $(GO) test ./test/promptfoo -count=1 -timeout 30m -v
	FIT_SOAK_KILLS=40 $(GO) test ./test/teams -count=1 -timeout 60m -v
	FIT_SOAK=1 $(GO) test ./test/containers ./test/network -count=1 -timeout 30m -run 'Killed|OfATeam|Unprivileged' -v
	FIT_SOAK=1 $(GO) test ./test/agents -count=1 -timeout 60m -v
	FIT_SOAK=1 $(GO) test ./test/fleet -count=1 -timeout 30m -run InTrouble -v
	FIT_SOAK=1 $(GO) test ./test/deploy -count=1 -timeout 30m -run Compose -v

# The committed list of what the binary is made of; a new dependency is a visible change.
deps:
	scripts/dependencies > docs/dependencies.txt

# The front end of fit view. Its bundle is committed, so that building fit needs Go only.
web:
	npm ci --prefix internal/view/web --no-audit --no-fund --loglevel=error
	npm run --prefix internal/view/web check
	npm run --prefix internal/view/web build

# In Chromium: a trace of one gigabyte, one of 100,000 turns, a grid of 5,000 cells; first paint, jumps, the heap. And 500 cells in one file.
.PHONY: bench-view
bench-view:
	FIT_BENCH=1 $(GO) test ./test/view -run '^Test(Gigabyte|LargeGrid|LongTrace)$$' -count=1 -timeout 10m -v

# The pictures of docs/, drawn from the demo in Chromium. Look at each before you commit it.
pictures:
	FIT_VIEW_PICTURES=1 $(GO) test ./test/view -run '^TestPictures$$' -count=1

# A manual page of each command.
man: build
	bin/fit man share/man/man1

# Everything that a version is published as: archives, deb, rpm, Homebrew formula, bills of materials, checksums. The commit must have the tag.
release:
	cd scripts/release && $(GO) run . -version "$(VERSION)" -output "$(CURDIR)/dist" $(if $(TARGETS),-targets $(TARGETS))

clean:
	rm -rf bin dist share

# Benchmarks that gate on a ratio measured within one run; the figures are kept in docs/performance.md.
.PHONY: bench-start bench-redact bench-spawn bench-stats bench-trace bench-run bench-session bench-evidence bench-benchmark bench-bus bench-versus bench-judge bench-workspace bench-gateway bench-dataset bench-container bench-acp bench-treatment bench-results bench-bridge
bench-start: build
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestStartup$$' -count=1 -v

bench-redact:
	$(GO) test ./redact -run '^$$' -bench '^BenchmarkClean$$' -benchtime 2s

bench-spawn:
	$(GO) test ./internal/sandbox -run '^$$' -bench '^BenchmarkSpawn$$'

# Coverage, A/A, peeking and power on the full grid (about 10 minutes), and the bootstrap's speed.
bench-stats:
	FIT_STATS_GRID=full $(GO) test -count=1 -timeout 30m -v -run 'Coverage|Claim|Peeking|Equivalence|NonInferior|Improvement|Announced' ./stats
	FIT_STATS_GRID=full $(GO) test -count=1 -timeout 30m -v -run 'Claims' ./internal/report
	FIT_BENCH=1 $(GO) test -count=1 -v -run 'TakesLessThanASecond' -bench BootstrapClustered ./stats

bench-run: build
	FIT_BENCH=1 $(GO) test ./test/bench -run "^TestRunOverhead$$" -count=1 -v

# Our verbs beside grep, wc and jq on one generated gigabyte.
bench-trace:
	$(GO) run ./internal/query/internal/tracebench

# Every kind of stream that the recordings hold, read on one core in flat memory, beside json.Valid on the same lines. FIT_BENCH_ONLY=part-of-a-name looks at some of them only.
bench-session:
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestEnrichment$$' -count=1 -timeout 30m -v

# The evidence of 200 MB of every kind of trace beside the flat fold of the same, and the memory for 10 MB beside that for 1 GB.
bench-evidence:
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestEvidence' -count=1 -timeout 30m -v

# The search for what a model was given, beside json.Valid over the same model calls.
bench-treatment:
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestTreatment$$' -count=1 -v

bench-benchmark:
	FIT_BENCH=1 $(GO) test ./internal/experiment/local -run "^TestOverhead$$" -count=1 -v

# Traced messages a second among 10, 100 and 1,000 participants, and how the cost of one grows.
bench-bus:
	FIT_BENCH=1 $(GO) test ./internal/harness -run "^TestFiguresOfTheBus$$" -count=1 -v

# A report of 1,000 cells and 15,000 replies beside that of fit-benchmark.
bench-versus: build
	FIT_BENCH=1 $(GO) test ./test/bench -run "^TestVersusReport$$" -count=1 -v

# 400 judgements by a model that takes 200 ms, eight at a time, beside the ideal 10 seconds.
bench-judge:
	$(GO) test ./internal/judge -run '^$$' -bench '^BenchmarkAsk$$' -benchtime 1x

# Samples that a model without tools answers, beside bare calls of the same model, and how long 500 take to load.
bench-dataset:
	FIT_BENCH=1 $(GO) test ./internal/experiment/local -run '^TestSpeedOfSamples$$' -count=1 -v

# How fast a log of another harness is read, beside a check that its text is JSON, and in how much memory.
# make bench-results SAMPLES=100000 reads 1 GB.
SAMPLES ?= 10000
bench-results:
	FIT_BENCH=1 FIT_SAMPLES=$(SAMPLES) $(GO) test ./internal/report/results -run '^TestALargeLogIsReadInLittleMemory$$' -count=1 -v

# People post in 200 threads and follow them in pages, beside a bare relay of events; the memory of it.
bench-bridge:
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestBridgeUnderLoad$$' -count=1 -v

# From the start of a container to the first event of an agent in it, beside the engine's own run.
bench-container:
	FIT_BENCH=1 $(GO) test ./test/containers -run '^TestStartBesideTheEngine$$' -count=1 -v

# The dialect of the Agent Client Protocol in MB/s, and what fit adds to the start of such an agent.
bench-acp:
	FIT_BENCH=1 $(GO) test ./internal/agent/acp -run '^TestSpeedOf' -count=1 -v

# A workspace of 20,000 files, exported and as a worktree, beside git worktree add.
bench-workspace:
	FIT_BENCH=1 $(GO) test ./internal/workspace -run '^TestPrepareBesideGit$$' -count=1 -v

# 2,016 tiny cells on a fleet beside a local run, 10,000 cells in its queue, 200 workers with instant cells, and how soon caps, limits and cancels take effect.
.PHONY: bench-fleet
bench-fleet:
	FIT_BENCH=1 $(GO) test ./test/fleet -run '^Test(OverheadBeyondLocal|AStoppedWorkerIsEnded)$$' -count=1 -timeout 40m -v
	FIT_BENCH=1 $(GO) test ./internal/experiment/fleet -run '^Test(TheCapHoldsOverTheWholeFleet|CtlOnAFleet|CancelReachesTheAgent)$$' -parallel 1 -count=1 -v
	FIT_BENCH=1 $(GO) test ./internal/experiment/fleet -run '^Test(TwoHundredWorkers|TenThousandCells)$$' -count=1 -timeout 20m -v

# The gateway beside direct connections: 50 streams, what it adds to an event, to memory and to a run.
bench-gateway: build
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestGatewayInARun$$' -count=1 -v # alone: a child's memory begins with its parent's
	FIT_BENCH=1 $(GO) test ./test/bench -run '^TestGateway(Latency|Holds|Takes)' -count=1 -v
	FIT_BENCH=1 $(GO) test ./internal/gateway/calls -run '^TestAThousandCallsAreListedQuickly$$' -count=1 -v
