# One command a line below; `make` lists them. The durations are of two cores and a fast network.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

VENV   := .venv
BIN    := $(VENV)/bin
# Where build output goes; `make clean` removes it.
BUILD  := .build
# Verilog goes to OUT, made with the options ARGS: make verilog OUT=board.v ARGS="--nodes 8"
OUT    := $(BUILD)/verilog/hypermon.v
ARGS   :=
# Which of several, for the commands that name them: make mutation OF=host
OF     :=
# $(call of,FIRST OTHERS...): OF, or the first
of = $(if $(OF),$(if $(filter $(OF),$(1)),$(OF),$(error OF=$(OF): there are $(1))),$(firstword $(1)))
# Packages are installed only if their hashes are in the locked files. HASHES=no: the same versions, without that check.
HASHES := yes
# A process more than cores (tests/conftest.py); the tests of a file stay together, because they share what they build.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=loadfile
# tests/conftest.py interrupts a test that hangs. One that cannot be interrupted is ended after an hour, with its stack.
HANGS := --max-worker-restart=0 -o faulthandler_timeout=3600 -o faulthandler_exit_on_timeout=true
# A download that fails is tried again.
export PIP_RETRIES ?= 8
# Byte code is kept, whatever the environment says: without it, reading the tests alone takes three times as long.
unexport PYTHONDONTWRITEBYTECODE

# Two sets of packages: what the demo needs, and on top of it what tests, lint, proofs and timing need.
SIM := $(VENV)/.installed-sim
DEV := $(VENV)/.installed-dev
# Apart from both: what the documentation site is built with.
SITE := $(BUILD)/site-env/.installed
# And what releases are made with.
DIST := $(BUILD)/dist-env/.installed
# And LiteX, for its example.
LITEX := $(BUILD)/litex-env/.installed
# And labgrid, for its example.
LABGRID := $(BUILD)/labgrid-env/.installed
# And Spark, for its test, if there is Java for it.
SPARK := $(BUILD)/spark-env/.installed

.PHONY: help
help: ## list the commands
	@printf 'HYPERMON: make COMMAND\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	  printf '  %-12s %s\n' "$$name" "$$text"; done
	@printf '\nEverything is installed into %s and built in %s; remove either to start afresh.\n' $(VENV) $(BUILD)

.PHONY: setup
setup: $(DEV) ## install everything at pinned versions into .venv (1 minute, 2.2 GB, once)
	@echo "Ready: $(BIN)/hypermon --help"

.PHONY: demo
demo: need-g++ $(SIM) ## 16 threads of a real program, traced through the virtual board (20 s; the first time 2 minutes)
	@$(BIN)/python -m hypermon.sim.demo $(ARGS)

.PHONY: test
test: need-g++ $(DEV) ## the tests that every change passes (8 minutes on two cores)
	$(PYTEST) $(HANGS) -m "not long and not slow and not formal" $(ARGS)

.PHONY: test-all
test-all: need-g++ $(DEV) ## these and the long ones of tests/long.txt (an hour on two cores)
	$(PYTEST) $(HANGS) -m "not slow and not formal" $(ARGS)

.PHONY: test-slow
test-slow: need-g++ $(DEV) $(if $(shell command -v java),$(SPARK)) ## many seeds, long runs (some minutes)
	$(PYTEST) -m slow $(ARGS)

.PHONY: soak
soak: need-g++ $(DEV) ## an hour of board time in each mode, every item accounted for: docs/develop/verification.md (15 minutes)
	@$(BIN)/python tests/soak/soak.py $(ARGS)

# In a folder of its own beside this checkout, so that ../shared is found; its logs stay in .build/ci.
CI := $(abspath ..)/$(notdir $(CURDIR))-ci

.PHONY: ci
ci: ## what continuous integration runs, in a fresh clone of HEAD (40 minutes; ARGS=quick or whole)
	@[ -z "$$(git status --porcelain)" ] || echo "Changes that are not committed are not tested."
	@rm -rf "$(CI)"; git clone --quiet . "$(CI)"
	@status=0; bash "$(CI)/.ci/run" $(ARGS) || status=$$?; \
	rm -rf $(BUILD)/ci; mkdir -p $(BUILD); cp -r "$(CI)/.build/ci" $(BUILD)/ci && rm -rf "$(CI)"; exit $$status

.PHONY: lint
lint: $(DEV) ## ruff everywhere, mypy --strict on the host side, for Windows too (30 s)
	$(BIN)/ruff check .
	@mkdir -p $(BUILD)/types/hypermon
	@for part in boards hdl host sim studies; do ln -sfn ../../../$$part $(BUILD)/types/hypermon/$$part; done
	$(BIN)/mypy
	$(BIN)/mypy --platform win32

.PHONY: verilog
verilog: $(SIM) ## plain Verilog of the board into OUT=.build/verilog/hypermon.v (10 s; see docs/integrate.md)
	@$(BIN)/python -m hypermon.hdl.verilog -o $(OUT) $(ARGS)

.PHONY: formal
formal: $(DEV) ## the proofs alone (10 minutes; the first time Yosys is compiled, a minute more)
	$(PYTEST) -m "formal and not slow" $(ARGS)

.PHONY: mutation
mutation: need-g++ $(DEV) ## 300 mutants of the gateware meet the tests, or OF=host, handwritten; OF=coverage (an hour or two; continues)
	@$(BIN)/python tests/mutation/$(patsubst coverage,cover,$(patsubst host,host_campaign,$(patsubst gateware,campaign,$(call of,gateware host handwritten coverage)))).py $(ARGS)

.PHONY: timing
timing: $(DEV) ## static timing on an ECP5-25F, of the core or OF=links; its OF=levels (1 minute), OF=resources, kinds (an hour)
	@$(BIN)/python -m hypermon.boards.measure.$(patsubst links,link_timing,$(patsubst core,core_timing,$(call of,core links levels resources kinds))) $(ARGS)
	@$(if $(filter resources kinds,$(OF)),$(BIN)/python docs/tools/generate.py)

.PHONY: bitstreams
bitstreams: $(DEV) ## bitstreams of all boards, and the table in docs/boards/README.md (five hours)
	@mkdir -p $(BUILD)/boards
	@failed=; for board in $(or $(BOARDS),$$($(BIN)/hypermon pinout --json | sed 's/.*"board": "\([^"]*\)".*/\1/')); do \
	  since=$$(mktemp); \
	  $(BIN)/hypermon build "$$board" -o $(BUILD)/boards $(ARGS) || failed="$$failed $$board"; \
	  find $(BUILD)/boards -maxdepth 1 -name "$$board-*.json" -newer "$$since" -exec cp {} docs/boards/ \; ; \
	  rm -f "$$since"; done; \
	$(BIN)/python docs/tools/generate.py && { [ -z "$$failed" ] || { echo "Not built:$$failed" >&2; exit 1; }; }

.PHONY: bitstream-check
bitstream-check: need-g++ $(DEV) ## the bits of BOARD=ice40-hx8k back to a netlist, and recorded from: docs/first-light.md (some minutes)
	@$(BIN)/python tests/bitstream/check.py $(or $(BOARD),ice40-hx8k) $(ARGS)

.PHONY: example
example: need-g++ $(DEV) $(if $(filter litex,$(OF)),$(LITEX)) $(if $(filter labgrid,$(OF)),$(LABGRID)) $(if $(filter spark,$(OF)),$(SPARK)) ## examples run: the benches of docs/cocotb.md, or OF=litex, labgrid, spark (1 to 2 minutes)
	@case $(call of,cocotb litex labgrid spark) in \
	cocotb) $(BIN)/python examples/cocotb/run.py --folder .build/examples $(ARGS);; \
	litex) $(BIN)/python examples/litex/run.py --litex $(BUILD)/litex-env/bin/python --folder $(BUILD)/litex $(ARGS);; \
	labgrid) $(BUILD)/labgrid-env/bin/python -m pytest -q -p no:cacheprovider --lg-env examples/labgrid/env.yaml \
	  --rootdir examples/labgrid examples/labgrid $(ARGS);; \
	spark) command -v java >/dev/null || { echo "java is missing. On Debian: apt-get install openjdk-17-jre-headless" >&2; exit 1; }; \
	  $(BIN)/python -m pytest -m slow tests/host/analysis/test_spark.py $(ARGS);; esac

.PHONY: guest
guest: need-g++ $(DEV) ## an unmodified Linux in QEMU, and the verilated board at its USB port, or OF=pcie, OF=gpio (2 to 4 minutes)
	@$(BIN)/python tests/e2e/$(call of,usb pcie gpio)_guest.py $(ARGS)

.PHONY: paper
paper: need-g++ $(DEV) ## the paper's evaluation, run again: docs/paper.md (30 minutes at most)
	@$(BIN)/python -m hypermon.studies.ipsc.paper $(ARGS)
	@$(BIN)/python docs/tools/generate.py

.PHONY: machines
machines: need-g++ $(DEV) ## measurements of four more papers, repeated: docs/machines.md (30 minutes)
	@$(BIN)/python -m hypermon.studies.machine.page $(ARGS)

# Which of tests/bench: make bench BENCH=scale ARGS="--events 100000000"
BENCH ?= *

.PHONY: bench
bench: need-g++ $(DEV) ## speeds, sizes and costs (some minutes; BENCH=scale: one of them; BENCH=peers: other programs too)
	@for bench in tests/bench/$(if $(filter peers,$(BENCH)),peers/measure,bench_$(BENCH)).py; do \
	  echo "== $$bench"; $(BIN)/python "$$bench" $(ARGS); done

.PHONY: docs
docs: $(if $(filter pictures,$(OF)),need-g++) $(DEV) ## write the tables in docs/ anew; OF=pictures: the pictures, with Debian's chromium (2 minutes)
	@$(BIN)/python docs/tools/$(patsubst tables,generate,$(call of,tables pictures)).py

.PHONY: site
site: $(SITE) ## the documentation as a site with search and a reference, links checked: .build/site (12 s; first time 30 s)
	@mkdir -p $(BUILD)/types/hypermon
	@for part in boards hdl host sim studies; do ln -sfn ../../../$$part $(BUILD)/types/hypermon/$$part; done
	@PYTHONPATH=$(BUILD)/types $(BUILD)/site-env/bin/python docs/tools/site.py

.PHONY: dist
dist: need-g++ $(DEV) $(if $(OF),,$(DIST)) ## all files of a release, with checksums: .build/dist (2 minutes); OF=check: each installed and used
	@$(if $(filter check,$(call of,files check)),.ci/dist-check,$(BIN)/python .ci/dist.py) $(ARGS)

.PHONY: clean
clean: ## remove what was built and cached; .venv stays
	rm -rf $(BUILD) build demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find boards docs hdl host node sim studies tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: need-g++
need-g++:
	@command -v g++ >/dev/null || { echo "g++ is missing. On Debian: apt-get install g++" >&2; exit 1; }

# ---------------------------------------------------------------------------------------- set-up

# Python 3.11 if there is one, else the first later one; or the one named by PYTHON=.
$(BIN)/python:
	@version='import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))'; \
	for python in $${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14}; do \
	  found=$$($$python -c "$$version" 2>/dev/null) && break; found=; \
	done; \
	[ "$$found" ] || { echo "Python 3.11 or later is missing. On Debian: apt-get install python3 python3-venv" >&2; exit 1; }; \
	$$python -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "Python $$found has no venv module. On Debian: apt-get install python$$found-venv" >&2; exit 1; }; \
	echo "Setting up: virtual environment $(VENV) with Python $$found (5 s)"; \
	rm -rf $(VENV); \
	$$python -m venv $(VENV)

# $(call install,EXTRA,what and how long)
define install
@echo "Setting up: $(2)"; \
start=$$SECONDS; \
if [ "$(HASHES)" = no ]; then \
  PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=requirements/constraints.txt \
    $(BIN)/python -m pip install --quiet --no-warn-script-location --editable '.[$(1)]'; \
else \
  .ci/install-locked $(BIN)/python requirements/locked-$(1).txt --editable .; \
fi; \
touch $@; \
echo "Setting up: done in $$((SECONDS - start)) s"
endef

$(SIM): pyproject.toml requirements/locked-host.txt requirements/locked-sim.txt $(wildcard host/blocks/*.[ch]) | $(BIN)/python
	$(call install,sim,host tools and gateware and simulator at the versions of constraints.txt (30 s and 460 MB))

$(DEV): $(SIM) requirements/locked-dev.txt studies/pyproject.toml .ci/libpython.py
	$(call install,dev,tools for tests and lint and proofs and timing (30 s and 1.7 GB more))
	$(BIN)/python -m pip install --quiet --no-warn-script-location --disable-pip-version-check --no-deps --no-build-isolation --editable ./studies
	$(BIN)/python .ci/libpython.py

# $(call apart,NAME,what and how long): an environment beside .venv
define apart
@echo "Setting up: $(2)"; \
rm -rf $(BUILD)/$(1)-env; \
$(BIN)/python -m venv $(BUILD)/$(1)-env; \
if [ "$(HASHES)" = no ]; then \
  $(BUILD)/$(1)-env/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/constraints-$(1).txt; \
else \
  .ci/install-locked $(BUILD)/$(1)-env/bin/python requirements/locked-$(1).txt; \
fi; \
touch $@
endef

$(SITE): requirements/locked-site.txt | $(BIN)/python
	$(call apart,site,tools for the documentation site (15 s and 170 MB))

$(DIST): requirements/locked-dist.txt | $(BIN)/python
	$(call apart,dist,tools for releases (10 s and 60 MB))

$(LITEX): requirements/locked-litex.txt | $(BIN)/python
	$(call apart,litex,LiteX for its example (10 s and 40 MB))

# Apart, because it brings a package of its own in place of pyserial; what the project needs is that of .venv.
$(LABGRID): requirements/locked-labgrid.txt | $(BIN)/python
	$(call apart,labgrid,labgrid for its example (10 s and 60 MB))
	@$(BUILD)/labgrid-env/bin/python -c 'import site, sys; \
	  open(site.getsitepackages()[0] + "/hypermon.pth", "w").write(f"import site; site.addsitedir({sys.argv[1]!r})\n")' \
	  "$$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')"

$(SPARK): requirements/locked-spark.txt requirements/locked-pyspark.txt | $(BIN)/python
	$(call apart,spark,Spark for its test (2 minutes and 800 MB))
	$(BUILD)/spark-env/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --require-hashes -r requirements/locked-pyspark.txt
	touch $@

.PHONY: lock
lock: $(DEV) ## write the locked files anew, after constraints.txt or pyproject.toml was changed (3 minutes)
	$(BIN)/python .ci/lock.py $(ARGS)
