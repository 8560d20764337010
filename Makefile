# Two commands do everything from a bare clone: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test lint bench clean

install: .venv/installed

.venv/installed: pyproject.toml setup.py $(wildcard src/saccade/attention/_*.c)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "saccade needs Python 3.11 or newer; try: make PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/installed-dev: pyproject.toml .venv/installed
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@

demo: install
	@$(BIN)/saccade demo

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2 --dist loadfile  # a page of snippets is one session, so it stays with one worker

bench: .venv/installed-dev
	$(BIN)/python benchmarks/attention.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
