# Two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
# Some images set this, and then each of hundreds of processes compiles the package anew.
export PYTHONDONTWRITEBYTECODE :=
# Two busy BLAS threads per process take half again as long as one. SEED=new draws other noise.
SEED ?= 0
# What a set of texts is walked in follows from the seed, too.
HASHES = $(if $(filter-out new os,$(SEED)),$(SEED),random)
PYTEST := env PYTHONHASHSEED=$(HASHES) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --seed $(SEED)
# Two processes that begin with half of the tests each, so that one file's tests share what they make.
TWO := -n 2 --dist worksteal

.PHONY: install demo serve test test-python quick test-statistics test-louder mutants test-server-postgres test-spark test-cluster test-slow test-browser test-proxy test-hours bench bench-accuracy audit docs lint types unit wheel clean

install: .venv/installed

.venv/bin/python:
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || (apt-get update -qq && apt-get install -y -qq python3-venv)
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[models,postgres,server]'
	@touch $@

.venv/dev: .venv/installed papers/pyproject.toml
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $$($(BIN)/python tools/dev_requirements.py)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable papers
	@touch $@

demo: install
	$(BIN)/heldout demo --out report.html

# A private ROC curve in a browser: open the analyst's link that it prints.
serve: install
	$(BIN)/heldout serve heldout-server --demo

# The four parts beside each other; all of them, whichever fails.
test: .venv/dev
	@$(MAKE) --no-print-directory --keep-going --jobs 4 unit lint types wheel

lint: .venv/dev
	$(BIN)/ruff check src papers tests benchmarks tools conftest.py
	$(BIN)/ruff format --check src papers tests benchmarks tools conftest.py

types: .venv/dev
	$(BIN)/mypy

unit: .venv/dev
	bash tools/with_postgres.sh $(PYTEST) $(TWO) --folders -m "not slow"

# Some rooms on a newer Python, where there is one and the package index has wheels for it.
NEWER ?= $(shell for python in python3.13 $(HOME)/.pyenv/versions/3.13.*/bin/python; do $$python -c "" 2>/dev/null && echo $$python && break; done)
ROOMS ?= tests/conformance tests/kernel/noise tests/models tests/server/test_api.py tests/test_session.py src
test-python:
	@if [ -z "$(NEWER)" ]; then echo "test-python: skipped, as there is no Python 3.13 here"; exit 0; fi; \
	  test -x .venv-newer/bin/python || $(NEWER) -m venv .venv-newer || exit 1; \
	  .venv-newer/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[models,postgres,server]' $$($(NEWER) tools/dev_requirements.py) || \
	    { echo "test-python: skipped, as there are no packages for $(NEWER)"; exit 0; }; \
	  env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-newer/bin/python -m pytest -q $(TWO) -m "not slow" $(ROOMS)

# The tests of one room and of those that import it, nearest first, for a minute: ROOM=ledger.
quick: .venv/dev
	$(PYTEST) $(TWO) -m "not slow" --seconds 50 $$($(BIN)/python tools/quick.py $(ROOM))

# Tests whose verdict depends on noise, with the operating system's: a right program fails one run
# in 10,000 at most, as all rates of chance add up to less (conftest.py).
test-statistics: .venv/dev
	$(PYTEST) --seed os $(TWO) -m chance

# Tests that state no rate of chance must pass whatever the noise: with tails 100 times as long.
test-louder: .venv/dev
	$(PYTEST) --louder 100 $(TWO) -m "not slow and not chance"

# Plants faults one at a time and counts those that a test notices; the table is docs/mutants.md.
mutants: .venv/dev
	$(BIN)/python tools/mutants.py --out docs/mutants.md

# Races, killed processes, simulations, examples of docs: six to eight minutes more, which CI takes too.
test-slow: .venv/dev
	bash tools/with_postgres.sh $(PYTEST) $(TWO) -m slow

# Spark is 400 MB and wants Java 17, so that its tests are a command of their own.
.venv/spark: .venv/dev
	@command -v java >/dev/null || (apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[spark]'
	@touch $@

test-spark: .venv/spark
	HELDOUT_TEST_SPARK=1 $(PYTEST) tests/engines -k spark

# The server's tests once more, with its tables and its ledger in PostgreSQL.
test-server-postgres: .venv/dev
	HELDOUT_TEST_SERVER_ON=postgres bash tools/with_postgres.sh \
	  $(PYTEST) $(TWO) tests/server -m "not slow"

# The server's pages in Debian's Chromium, which is 300 MB; SCREENSHOTS=1 writes those of the docs.
test-browser: .venv/dev
	@command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium)
	HELDOUT_TEST_BROWSER=1 HELDOUT_WRITE_SCREENSHOTS=$(SCREENSHOTS) $(PYTEST) tests/browser

# The server behind nginx, with TLS and a sub-path; the slow tests run it too, where nginx is.
test-proxy: .venv/dev
	@command -v nginx >/dev/null || (apt-get update -qq && apt-get install -y -qq nginx-light)
	$(PYTEST) tests/server/test_proxy.py

# One master, two workers and Spark Connect on loopback; one worker is killed on the way.
test-cluster: .venv/spark
	$(BIN)/python tools/with_cluster.py $(PYTEST) tests/engines -k "spark or connect or worker"

wheel: .venv/dev
	$(BIN)/python tools/check_wheel.py

# The five tutorials, followed from an installed wheel to the final picture.
test-hours: .venv/dev
	$(BIN)/python tools/check_wheel.py --hours

bench: .venv/dev
	$(BIN)/python -m benchmarks

# Widths, coverage and power beside what they could be; DATA=<folder> adds real data sets.
DATA ?= ../shared/data
bench-accuracy: .venv/dev
	$(BIN)/python -m benchmarks.accuracy $(if $(wildcard $(DATA)),--data $(DATA))

# Tries to prove the claims wrong, in one run. AUDIT_MINUTES=300 AUDIT_SAMPLES=100000 looks closer;
# HELDOUT_TEST_SPARK=1 replays through Spark too (make .venv/spark installs it).
AUDIT_MINUTES ?= 45
AUDIT_SAMPLES ?= 20000
AUDIT_LATTICE ?= 10000000
AUDIT_PAIRS ?= 200
audit: .venv/dev
	tools/with_postgres.sh $(BIN)/heldout audit --replay --pairs $(AUDIT_PAIRS) --out docs/replay.md
	tools/with_postgres.sh $(BIN)/heldout audit --all --minutes $(AUDIT_MINUTES) \
	  --samples $(AUDIT_SAMPLES) --lattice $(AUDIT_LATTICE) --out docs/audit.md

docs: .venv/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf .venv .venv-newer site dist build report.html
