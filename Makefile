# Everything a developer or a CI server runs. `make` alone lists the targets. Works with GNU make
# 3.81 (macOS) and newer.

SHELL := /bin/sh

# Generators and linter are pinned by tools/go.mod, a module of its own so that their hundreds of
# requirements stay out of the server's. They are built into a folder named after what they are
# built from: a change of pins or of Go builds them anew.
TOOLS := bin/tools/$(shell { go env GOVERSION; cat tools/go.mod; } | cksum | cut -d' ' -f1)

# What makes a release has more requirements than the other tools together, and they would change
# the versions of those.
RELEASE_TOOLS := bin/tools/release-$(shell { go env GOVERSION; cat tools/release/go.mod; } | cksum | cut -d' ' -f1)

# Longer than the slowest package needs with the race detector on two loaded cores, shorter than a
# CI server's own limit.
TEST_TIMEOUT ?= 15m
# In each package, of two at a time: most tests wait for the database or for a time most of theirs.
TEST_PARALLEL ?= 4
# For each fuzz target: long enough to leave the seeds behind, short enough to be run by hand.
FUZZ_TIME ?= 30s
# Drawn from openapi.yaml; make test sends 5,000, a third of it with the race detector. A minute
# or two.
FUZZ_REQUESTS ?= 100000
# Handed on by dev and bench.
ARGS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: dev
dev: build ## run everything on this machine: PostgreSQL, simulated provider, API, workers
	@# Not `go run`, which does not hand SIGTERM on to the program. exec gives it the signals.
	exec bin/paidonce dev $(ARGS)

.PHONY: build
build: ## build bin/paidonce
	CGO_ENABLED=0 go build -trimpath -o bin/paidonce ./cmd/paidonce

# Compiled first, so that no test shares its processor with a compiler; the tests of whole processes
# come last and alone, because leases and time-outs run there. Nothing in internal/tidy could race.
# `make verify` does the vetting.
.PHONY: test
test: ## run all tests, with the race detector where there is a C compiler
	@if CGO_ENABLED=1 go build -race -o /dev/null runtime/cgo >/dev/null 2>&1; then \
		echo "tests run with the race detector"; export CGO_ENABLED=1; race=-race; \
	else \
		echo "tests run WITHOUT the race detector: it needs a C compiler, and none works here"; race=; \
	fi; \
	go list -export -test $$race ./... >/dev/null && \
	go -C sdk/go list -export -test ./... >/dev/null || exit 1; \
	failed=0; \
	go test $$race -vet=off -shuffle=on -parallel $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) \
		$$(go list ./... | grep -vE '/(e2e|internal/tidy)$$') || failed=1; \
	go test -vet=off ./internal/tidy || failed=1; \
	go test $$race -vet=off -shuffle=on -timeout $(TEST_TIMEOUT) ./e2e || failed=1; \
	exit $$failed

# Its conflicts are real there, and are to be resolved by running again. The race detector's time is
# better spent in make test.
.PHONY: test-serializable
test-serializable: ## run all tests with serializable transactions, then with repeatable read
	for level in serializable 'repeatable read'; do \
		TEST_ISOLATION="$$level" go test -count=1 -timeout $(TEST_TIMEOUT) ./... || exit 1; \
	done

.PHONY: generate
generate: $(TOOLS)/sqlc $(TOOLS)/oapi-codegen ## write the generated code anew
	$(TOOLS)/sqlc compile
	rm -f db/*.sql.go # sqlc does not remove what it made of a query file that is gone
	$(TOOLS)/sqlc generate
	$(TOOLS)/oapi-codegen -config api/oapi-codegen.yaml openapi.yaml
	go run ./sdk/python/generate

.PHONY: verify
verify: ## check generated code, format, vet, linters, go.mod, vulnerabilities, openapi.yaml
verify: verify-generated verify-format vet lint verify-modules vulncheck verify-spec breaking

# Generates into a scratch folder and compares: nothing is touched, and uncommitted work does not
# matter.
.PHONY: verify-generated
verify-generated: $(TOOLS)/sqlc $(TOOLS)/oapi-codegen
	@echo "generated code is what its sources give"
	@tools="$$PWD/$(TOOLS)"; scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	mkdir "$$scratch/db" "$$scratch/api" && \
	cp sqlc.yaml openapi.yaml "$$scratch" && cp -R db/query db/migrations "$$scratch/db" && \
	cp api/oapi-codegen.yaml "$$scratch/api" && \
	(cd "$$scratch" && "$$tools/sqlc" generate && \
		"$$tools/oapi-codegen" -config api/oapi-codegen.yaml openapi.yaml) && \
	{ (cd "$$scratch" && ls db/*.sql.go db/*.gen.go api/*.gen.go); \
		ls db/*.sql.go db/*.gen.go api/*.gen.go; } | sort -u | { \
		stale=0; \
		while read -r file; do diff -u "$$file" "$$scratch/$$file" || stale=1; done; \
		[ $$stale = 0 ] || { echo "generated code is stale: run make generate" >&2; exit 1; }; }

.PHONY: verify-format
verify-format:
	@echo "gofmt -l"
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')) && \
	[ -z "$$unformatted" ] || { echo "not gofmt'ed:" $$unformatted >&2; exit 1; }

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## golangci-lint
	$(TOOLS)/golangci-lint run ./...

.PHONY: verify-modules
verify-modules:
	go mod tidy -diff
	@# sdk/go is in this repository: there is no download of it that could be verified.
	@checked=$$(mktemp -d) && trap 'rm -rf "$$checked"' EXIT && cp go.mod go.sum "$$checked" && \
	go mod edit -droprequire paidonce/sdk/go -dropreplace paidonce/sdk/go "$$checked/go.mod" && \
	go mod verify -modfile "$$checked/go.mod"

# Without cgo, sqlc runs PostgreSQL's parser as WebAssembly: the same output, but no C compiler is
# needed, and it builds in one minute instead of three.
$(TOOLS)/sqlc:
	CGO_ENABLED=0 go -C tools build -o "$(CURDIR)/$@" github.com/sqlc-dev/sqlc/cmd/sqlc

$(TOOLS)/oapi-codegen:
	CGO_ENABLED=0 go -C tools build -o "$(CURDIR)/$@" \
		github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen

$(TOOLS)/golangci-lint:
	CGO_ENABLED=0 go -C tools build -o "$(CURDIR)/$@" \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: bench
bench: ## measure (ARGS for its options)
	./bench/run $(ARGS)

.PHONY: sim
sim: ## run the simulation with 1,000 seeds (SEEDS=n for others), or with one (SEED=n)
	PAIDONCE_SIM_SEEDS=$(or $(SEEDS),1000) PAIDONCE_SIM_SEED=$(SEED) PAIDONCE_SIM_TRACE=$(SEED) \
		go test -count=1 -run '^TestSimulation$$' -v -timeout 1h ./sim $(ARGS)

# Needs PostgreSQL's own programs, pg_basebackup among them; the download that other tests make do
# with has only the server.
HA_TESTS := TestStandbyIsPromoted|TestDatabaseFrozenForLong|TestRestoreToAnEarlierMoment
HA_TESTS := $(HA_TESTS)|TestConnectionCut|TestReconcilerIsCutOff|TestCommitCutOff
.PHONY: ha
ha: ## kill a primary under load and promote its standby, freeze a server, restore an older copy
	PAIDONCE_HA=1 go test -count=1 -v -timeout 10m -run '^($(HA_TESTS))' ./e2e | \
		grep -E '^ *(---|ok|FAIL|PASS|ha_)'

# Takes the servers of older versions from git, and half an hour for all of them. FROM=10 is the
# upgrade of one version.
.PHONY: upgrade
upgrade: ## migrate from each version, with ROWS rows, while its server serves and a dump holds a table
	PAIDONCE_UPGRADE_ROWS=$(or $(ROWS),1000000) PAIDONCE_UPGRADE_FROM=$(FROM) \
		go test -count=1 -v -timeout 2h -run '^TestUpgradeFromEachVersion$$' ./e2e

.PHONY: chaos
chaos: ## three clients pay each of ORDERS orders (100) while servers are killed and answers are lost
	PAIDONCE_ORDERS=$(or $(ORDERS),100) go test -count=1 -v -timeout 30m \
		-run '^TestManyClientsPayEachOrderOnce' ./e2e | grep -E '^ *(---|ok|FAIL|PASS)|_test.go'

.PHONY: mutation
mutation: ## take each guard out of the product in turn, and see that the simulation notices
	go test -count=1 -run '^TestSimulationNoticesMissingGuards$$' -v ./sim $(ARGS)

.PHONY: model
model: ## explore every state of the small model of claim, lease, window and sweep
	go test -count=1 -run '^TestModel' -v ./sim/model $(ARGS)

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZ_TIME, and FUZZ_REQUESTS requests drawn from openapi.yaml
	@grep -rlE --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$name in $$(dirname "$$file")"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZ_TIME) \
				"$$(dirname "$$file")" </dev/null || exit 1; \
		done; \
	done
	PAIDONCE_FUZZ_REQUESTS=$(FUZZ_REQUESTS) \
		go test -count=1 -run '^TestSpecFuzz$$' -v -timeout 1h ./api

# Needs Node.js 20 or newer and npm, besides Go. What is generated is committed: only a change of
# openapi.yaml needs this.
.PHONY: sdk
sdk: $(TOOLS)/oapi-codegen ## generate the SDKs from openapi.yaml, and compile TypeScript (needs Node.js)
	go run ./sdk/python/generate
	cd sdk/typescript && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && \
		npm run --silent generate && npm run --silent build
	cd sdk/go && "$(CURDIR)/$(TOOLS)/oapi-codegen" -config oapi-codegen.yaml ../../openapi.yaml && \
		go build ./...

# make test runs these as well, and skips what Node.js or Python is missing for; here that is a
# failure, and so are stale SDKs.
SDK_TESTS := SDK|Python|Stripe(Go|Node)|TypeScript|Compatib|Webhooks|Shapes|Guides
SDK_TESTS := $(SDK_TESTS)|ChargesCommand|Browser|Parts
.PHONY: test-sdk
test-sdk: sdk $(TOOLS)/golangci-lint ## test the SDKs, and Stripe's (needs Node.js and Python)
	@git diff --exit-code --stat -- sdk || { \
		echo "the SDKs are stale: run make sdk and commit" >&2; exit 1; }
	cd sdk/go && go mod verify && go vet ./... && \
		"$(CURDIR)/$(TOOLS)/golangci-lint" run --allow-parallel-runners ./...
	PAIDONCE_NEED_NODE=1 PAIDONCE_NEED_PYTHON=1 \
		go test -count=1 -run '$(SDK_TESTS)' ./e2e ./docs/reference

# What people and generators read of openapi.yaml. Needs Node.js 20.19 or newer and npm; the modules
# stay in tools/spec.
SPEC_MODULES := tools/spec/node_modules/.package-lock.json
$(SPEC_MODULES): tools/spec/package-lock.json
	cd tools/spec && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: lint-spec
lint-spec: $(SPEC_MODULES) ## check openapi.yaml with Redocly and Spectral (needs Node.js)
	REDOCLY_TELEMETRY=off tools/spec/node_modules/.bin/redocly lint \
		--config tools/spec/redocly.yaml openapi.yaml
	node tools/spec/spectral.mjs openapi.yaml

# Needs Node.js and a registry within reach; without them everything else is checked.
.PHONY: verify-spec
verify-spec:
	@if ! command -v npm >/dev/null || ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)' 2>/dev/null; then \
		echo "SKIPPED lint-spec: Node.js 20.19 or newer and npm are not here"; \
	elif ! $(MAKE) --no-print-directory $(SPEC_MODULES); then \
		echo "SKIPPED lint-spec: npm could not install what tools/spec/package-lock.json pins"; \
	else $(MAKE) --no-print-directory lint-spec; fi

# The database of vulnerabilities comes as a Go module, so that only the module proxy is needed, and
# a pinned one finds the same tomorrow: move it on before a release. What is built of it, and with
# it, stays below bin/.
GOVULNCHECK := 1.9.0
VULNDB := v0.0.0-20261105234957-e22db6528018
bin/tools/govulncheck-$(GOVULNCHECK)/govulncheck:
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install golang.org/x/vuln/cmd/govulncheck@v$(GOVULNCHECK)

bin/tools/vulndb-$(VULNDB)/ID:
	go mod download golang.org/x/vulndb@$(VULNDB)
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D).new" go install golang.org/x/vulndb/cmd/indexdb@$(VULNDB)
	"$(@D).new/indexdb" -out "$(@D).new" \
		-vulns "$$(go env GOMODCACHE)/golang.org/x/vulndb@$(VULNDB)/data/osv"
	rm -rf "$(@D)" && mv "$(@D).new" "$(@D)"

# Fails for modules; a finding in Go's own library is only reported. Exceptions are in
# tools/vulncheck.allow.
.PHONY: vulncheck
vulncheck: ## report known vulnerabilities in what is built in
	@if ! $(MAKE) --no-print-directory bin/tools/govulncheck-$(GOVULNCHECK)/govulncheck \
		bin/tools/vulndb-$(VULNDB)/ID; then \
		echo "SKIPPED vulncheck: the module proxy does not give govulncheck or its database"; \
	else tools/vulncheck.sh bin/tools/govulncheck-$(GOVULNCHECK)/govulncheck \
		"$(CURDIR)/bin/tools/vulndb-$(VULNDB)"; fi

# Measures too: PAIDONCE_LIST_CHARGES=10000000 makes so many. make test has a smaller number, and
# counts what is read.
.PHONY: lists
lists: ## list by every filter in an account of ten million charges (some ten minutes, 10 GB)
	PAIDONCE_LIST_CHARGES=$(or $(CHARGES),10000000) \
		go test -count=1 -v -timeout 2h -run '^TestListsReadNoMoreThanTheyShow$$' ./db

# Built by version, outside tools/go.mod: its requirements would change those of the generators.
OASDIFF := 1.37.0
bin/tools/oasdiff-$(OASDIFF)/oasdiff:
	CGO_ENABLED=0 GOBIN="$(CURDIR)/$(@D)" go install github.com/oasdiff/oasdiff@v$(OASDIFF)

# A release copies openapi.yaml to docs/openapi.released.yaml. BASE compares with another one.
BASE ?= docs/openapi.released.yaml
.PHONY: breaking
breaking: ## report what of openapi.yaml would break clients of the last release
	@if [ ! -f "$(BASE)" ]; then echo "$(BASE) is not there: nothing was released yet"; exit 0; fi; \
	$(MAKE) --no-print-directory bin/tools/oasdiff-$(OASDIFF)/oasdiff && \
	bin/tools/oasdiff-$(OASDIFF)/oasdiff breaking --fail-on ERR "$(BASE)" openapi.yaml && \
	echo "openapi.yaml breaks nothing of $(BASE)"

# They take minutes to build, once. Without cgo, cosign has no support for hardware
# tokens.
$(RELEASE_TOOLS)/goreleaser:
	CGO_ENABLED=0 go -C tools/release build -o "$(CURDIR)/$@" github.com/goreleaser/goreleaser/v2

$(RELEASE_TOOLS)/cyclonedx-gomod:
	CGO_ENABLED=0 go -C tools/release build -o "$(CURDIR)/$@" \
		github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

$(RELEASE_TOOLS)/cosign:
	CGO_ENABLED=0 go -C tools/release build -o "$(CURDIR)/$@" github.com/sigstore/cosign/v2/cmd/cosign

# Signed only with COSIGN_KEY. A checkout without git's own folder records no revision.
.PHONY: release-snapshot
release-snapshot: $(RELEASE_TOOLS)/goreleaser $(RELEASE_TOOLS)/cyclonedx-gomod
release-snapshot: $(if $(COSIGN_KEY),$(RELEASE_TOOLS)/cosign)
release-snapshot: ## make archives, deb, rpm, SBOMs and checksums of this commit in bin/dist
	PATH="$(CURDIR)/$(RELEASE_TOOLS):$$PATH" $(RELEASE_TOOLS)/goreleaser release \
		--snapshot --clean $(if $(COSIGN_KEY),,--skip=sign)

# Installs to a folder of its own, not on this machine.
.PHONY: test-packages
test-packages: release-snapshot ## install the deb, charge with it, upgrade and purge it (needs dpkg and root)
	PAIDONCE_DEB="$$(ls "$(CURDIR)"/bin/dist/paidonce_*_"$$(dpkg --print-architecture)".deb)" \
		go test -count=1 -run '^TestPackage$$' -v ./e2e

.PHONY: clean
clean: ## remove what was built; .paidonce/, the data of dev, stays
	rm -rf bin
