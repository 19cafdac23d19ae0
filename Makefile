# Each target sets up what it needs in .venv, once; a second call does nothing slow.
PYTHON ?= python3.11
ifeq (,$(shell command -v $(PYTHON) 2>/dev/null))
PYTHON := python3
endif
BIN := .venv/bin

.PHONY: demo test coverage lint format dist docs docs-serve figures bench fuzz soak clean

demo: .venv/installed
	$(BIN)/python tools/demo.py

# One worker a core, each with one thread of PyTorch: see tests/conftest.py.
test: lint docs
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

coverage: .venv/installed
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term $(PYTEST_ARGS)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, into site/: strictly, a warning is an error.
docs: .venv/installed
	$(BIN)/python tools/site.py

docs-serve: .venv/installed
	$(BIN)/python tools/site.py --serve

# Reports, numbers and pictures of README and docs: from the records, and by running the examples.
figures: .venv/installed
	$(BIN)/lignn report results
	$(BIN)/lignn report results --docs README.md --docs docs
	$(BIN)/python tools/commands.py
	$(BIN)/python -m examples
	$(BIN)/python -m tests.serve.screenshots docs/images/label.png

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The wheel and the sdist, each installed and used in a bare environment of every Python found. See RELEASING.md.
dist: .venv/installed
	$(BIN)/python tools/check_wheel.py

bench: .venv/installed
	$(BIN)/lignn bench

# For hours: LIGNN_FUZZ seconds of mutated files, and every write failed in turn. See docs/results/faults.md.
LIGNN_FUZZ ?= 3600
fuzz: .venv/installed
	$(BIN)/python -m tests.faults.readers --seconds $(LIGNN_FUZZ) --examples 500
	LIGNN_FAULTS=all $(BIN)/python -m pytest -n auto --dist worksteal tests/faults

# The service: killed under writers, failures below it, then ten minutes under many clients. See docs/get_started/serving.md.
LIGNN_SOAK ?= 600
soak: .venv/installed
	$(BIN)/python -m tests.serve.soak --seconds $(LIGNN_SOAK) --record results/bench/soak.jsonl

# The checkout is installed in editable mode: only a change of what it depends on installs anything again.
.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .coverage build site dist .cache
