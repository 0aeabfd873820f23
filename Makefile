# Everything here sets itself up: a Python >= 3.11, make and git are enough.
#
#   make demo    run the demo on a photograph
#   make test    run the tests                       (PYTEST_ARGS="-k border" for some of them)
#   make test-foreign   run others' Metal kernels too: test-tinygrad and test-enceladus fetch what they need
#   make check   lint, format, types, import rule
#   make fuzz    random programs, compared on every device, for FUZZ_MINUTES (10)
#   make bench   print the benchmark table
#   make venv    only make .venv, with all tools
#   make clean   remove .venv and whatever was built
#
# PYTHON names the interpreter to use: make test PYTHON=/opt/python3.13/bin/python3

PYTHON ?= python3 python3.13 python3.12 python3.11
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
FUZZ_MINUTES ?= 10
FUZZ_ARGS ?=

# One pip at a time in one environment.
.NOTPARALLEL:
.PHONY: demo test test-foreign test-tinygrad test-enceladus check lint types layers fuzz bench venv clean

demo: $(VENV)/images.stamp
	@$(BIN)/python examples/demo.py

test: $(VENV)/dev.stamp
	@$(BIN)/pytest $(PYTEST_ARGS)

test-foreign: test-tinygrad test-enceladus

test-tinygrad: $(VENV)/dev.stamp
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet 'tinygrad==0.14.*'
	@$(BIN)/pytest tests/foreign/test_tinygrad.py $(PYTEST_ARGS)

# Its wheels are for Macs only: what is needed here is the Python part of its source.
ENCELADUS := $(VENV)/enceladus
test-enceladus: $(VENV)/dev.stamp
	@test -d $(ENCELADUS) || { \
		$(BIN)/python -m pip download --disable-pip-version-check --quiet --no-deps --no-binary :all: \
			--dest $(ENCELADUS).part 'enceladus==0.1.76' \
		&& tar -C $(ENCELADUS).part --strip-components 1 -xzf $(ENCELADUS).part/enceladus-*.tar.gz \
		&& mv $(ENCELADUS).part $(ENCELADUS); }
	@METALJIT_ENCELADUS=$(ENCELADUS) $(BIN)/pytest tests/foreign/test_enceladus.py $(PYTEST_ARGS)

check: lint types layers

lint: $(VENV)/dev.stamp
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	@$(BIN)/mypy
	@$(BIN)/mypy tests $(wildcard benchmarks examples)

layers: $(VENV)/dev.stamp
	@$(BIN)/pytest -q tests/test_layers.py

fuzz: $(VENV)/dev.stamp
	@FUZZ_MINUTES=$(FUZZ_MINUTES) $(BIN)/python tests/fuzz/fuzz.py $(FUZZ_ARGS)

bench: $(VENV)/bench.stamp
	@$(BIN)/python -m benchmarks

venv: $(VENV)/dev.stamp
	@echo "Ready: $(BIN)"

clean:
	rm -rf $(VENV) build dist out *.egg-info grammar/*.tables
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov
	find metaljit grammar runtime stdlib_ops tests -name __pycache__ -type d -prune -exec rm -rf {} +

# EXTRA.stamp: metaljit[EXTRA] is installed, editable, as these files say now. The build saves the parser's tables.
$(VENV)/%.stamp: pyproject.toml $(wildcard setup.py grammar/mjk.lark grammar/tables.py) | $(BIN)/python
	@echo "Installing metaljit[$*] into $(VENV) (the first time it downloads a C++ compiler: a minute or two) ..."
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input --editable '.[$*]' \
		> $(VENV)/$*.log 2>&1 \
		|| { cat $(VENV)/$*.log; echo "error: pip failed, its output is above"; exit 1; }
	@touch $@

$(BIN)/python:
	@for python in $(PYTHON); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
			echo "Making $(VENV) with $$($$python --version) ..."; \
			$$python -m venv --clear $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "error: '$$python -m venv' failed; on Debian and Ubuntu 'apt-get install python3-venv' helps"; \
			exit 1; \
		fi; \
	done; \
	echo "error: found no Python >= 3.11 under '$(PYTHON)'; name one: make PYTHON=/path/to/python3 ..."; \
	exit 1
