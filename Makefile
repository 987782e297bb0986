# Cofferdam. `make demo` and `make test` work on a fresh Debian or Ubuntu
# machine: `deps` installs what is missing, with a line for each thing.

GO       := $(CURDIR)/scripts/go
BIN      := bin
AGENT    := internal/sandboxes/guest/embedded/bin/cofferdam-guest
STAGE    := internal/sandboxes/engine/embedded/bin/cofferdam-stage
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GVISOR   := $(shell sed -n 's/^require gvisor.dev\/gvisor //p' runsc/go.mod)
LDFLAGS  := -s -w -X main.version=$(VERSION)
TOOL     := $(GO) tool -modfile=tools.mod
# What is embedded counts as well.
SOURCES  := $(shell find cmd internal api client -name '*.go' -not -name '*_test.go' -o -path '*/programs/*' -type f -o -name '*.sh' 2>/dev/null) go.mod
# Runs a part of the tests, and once more what failed; lists that at the end.
FLAKY    := $(GO) run ./test/flaky
# Built as the binary is, so that the tests share what was compiled for it, and linked
# without a debugger's tables, which takes a third less.
FLAGS    := -count=1 -p 4 -vet=off -trimpath -ldflags=-s
STATIC   := CGO_ENABLED=0
PACKAGES  = $(shell $(GO) list ./... | grep -vE '/test/(e2e|containment|differential|isolation|sdk)')
# These take longest, and begin first: else the last of them runs alone at the end.
LONGEST  := ./internal/sandboxes/sandbox ./cmd/cofferdam ./test/differential/... ./internal/packages/gateway ./internal/network/egress ./internal/sandboxes/engine/gvisor ./internal/sandboxes/guest ./internal/serve/httpapi/e2b ./internal/sandboxes/engine/runc

# Tests that build something find the same Go.
export PATH := $(CURDIR)/.tools/go/bin:$(PATH)

.PHONY: build install uninstall deps template template-now demo test test-unit test-all sdk-newest test-vm isolation check bench release wheel clean lint fmt

build: $(BIN)/cofferdam $(BIN)/runsc

# Both are static and embedded in the one binary: the guest agent, and what lays out a
# sandbox, which starts in a twentieth of the time that the one binary takes.
$(AGENT) $(STAGE): $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ ./cmd/$(@F)

$(BIN)/cofferdam: $(AGENT) $(STAGE) $(SOURCES)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/cofferdam

# runsc must be static: a dynamically linked one dies at its start.
$(BIN)/runsc: $(wildcard runsc/*.go) runsc/go.mod runsc/go.sum
	@echo "building runsc from the pinned gVisor (a minute the first time)"
	cd runsc && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X gvisor.dev/gvisor/runsc/version.version=$(GVISOR)' -o ../$@ .

# Where programs, completions and the unit go: PREFIX, with DESTDIR in front. A package
# is made where its builder says what is there.
install: $(if $(DESTDIR),,deps) build
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh scripts/install

uninstall:
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" sh scripts/install remove

deps:
	@sh scripts/deps

# The template that the tests share, built where it is not of this version.
template: deps build
	@$(MAKE) --no-print-directory template-now

template-now:
	@COFFERDAM_STATE=$(CURDIR)/.cofferdam COFFERDAM_RUNTIME=$${TMPDIR:-/tmp}/cofferdam-template-$$(id -u) sh -c \
		'$(BIN)/cofferdam template build --if-needed debian && { $(BIN)/cofferdam stop >/dev/null 2>&1 || true; }'

demo: deps build
	@sh scripts/demo

# The template is built beside the tests that do without, which let it go first: what
# follows waits for it. Four packages run at a time, and of each four tests that may, since
# many of them wait for disks, programs and clocks. The tests of real sandboxes come after,
# the longest first, and share the machine with nothing but themselves; they mostly wait for
# their sandboxes, so that more of them run at once. The vet is lint's.
test: deps build
	@$(FLAKY) forget
	@$(MAKE) --no-print-directory -j2 template-now test-unit
	$(STATIC) $(FLAKY) sandboxes ./test/e2e/... ./test/sdk/... ./test/containment/... ./test/isolation/... -- $(FLAGS) -parallel 14 -timeout 20m
	@$(FLAKY) list

test-unit:
	$(STATIC) nice -n 5 $(FLAKY) unit $(LONGEST) $(PACKAGES) -- $(FLAGS) -parallel 4

# A process with the race detector waits a second before it ends; some tests start
# thousands.
RACE := GORACE=atexit_sleep_ms=10

# For a machine that runs it each night: what the newest SDKs of the index send that is not known yet, and
# our own programs with them; then their makers' suites, if SUITES has both checkouts (see scripts/sdk-suites).
sdk-newest: build template
	COFFERDAM_LONG=1 $(FLAKY) sdk ./test/sdk/... -- -count=1 -timeout 30m -run 'Newest|Changes|JavaScript|Python|Binary|Daemon'
	@if [ -n "$(SUITES)" ]; then $(CURDIR)/scripts/sdk-suites $(SUITES); fi

# All parts that have not passed on this commit, or those that are named: make test-all PART=race,e2e
test-all: build template
	@sh scripts/deps long
	@FLAKY="$(FLAKY)" PACKAGES="$(PACKAGES)" sh scripts/test-all "$(PART)"

# In an emulated machine with systemd and control groups of version 2. It is not run again
# if it fails: what did is in .cofferdam/vm. The test bounds the machine, and says at what
# step it was; -timeout is above that and the making of its disks.
test-vm: build template
	@sh scripts/deps long
	$(STATIC) COFFERDAM_LONG=1 $(GO) test ./test/vm -count=1 -v -run TestGuest -timeout 200m

# What two sandboxes of different tokens can tell each other, as one table: make isolation
# TRIALS=1000 ONLY="page cache,approvals" JSON=/tmp/rows.json. Nothing else should run beside it.
TRIALS ?= 1000
ONLY   ?=
JSON   ?=
isolation: build template
	@$(STATIC) $(GO) vet -tags leaky ./internal/decide/approval ./internal/decide/admission
	@cd test/isolation && $(STATIC) $(GO) test -count=1 -timeout 90m -run 'TestIsolation$$' -args -isolation.trials=$(TRIALS) -isolation.only="$(ONLY)" -isolation.json="$(JSON)"

check: deps build lint
	$(RACE) $(GO) test -race -count=1 $(PACKAGES)

lint:
	@test -z "$$($(TOOL) gofumpt -l api client cmd internal packaging runsc test bench)" || { $(TOOL) gofumpt -l api client cmd internal packaging runsc test bench; exit 1; }
	$(GO) vet ./...
	$(TOOL) golangci-lint run ./...
	cd bench && $(GO) vet ./... && $(GO) tool -modfile=../tools.mod golangci-lint run ./...
	@sh scripts/vulnerabilities

fmt:
	$(TOOL) gofumpt -w api client cmd internal packaging runsc test bench

# All of it, or some parts: make bench PART=run,exec (ROUNDS=0.2: a quick look).
PART   ?=
ROUNDS ?= 1
bench: deps build template
	cd bench && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN)/bench .
	$(BIN)/bench -only "$(PART)" -rounds "$(ROUNDS)"

# Of a commit, not of the working tree: make release COMMIT=v1.2.0 ARCHES=amd64
COMMIT ?= HEAD
ARCHES ?= amd64,arm64
release: deps
	$(GO) run ./packaging/release -commit "$(COMMIT)" -arch "$(ARCHES)" -out dist

# The Python package with the programs of bin in it, for this machine's processor.
wheel: build
	@sh scripts/wheel dist

clean:
	rm -rf $(BIN) $(AGENT) $(STAGE) dist
