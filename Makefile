# Everything runs from .venv, which these targets build; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.tested
PARTS := $(VENV)/.parts
unexport PYTHONDONTWRITEBYTECODE  # what is compiled once need not be compiled in every process

.PHONY: demo compiled test test-long test-pythons test-versions test-frameworks test-neighbours bench screenshots check format house clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "reenact needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"
	$(BIN)/python -m pip install -q -e .
	touch $@

# The real SDKs are many; who wants the demo need not wait for them.
$(TESTED): $(READY)
	$(BIN)/python -m pip install -q -e . --group test --group check --group sdk --group neighbours
	touch $@

# Tests drive a real terminal and open pages in a real browser.
$(PARTS): $(TESTED)
	PYTHONPATH=tests $(BIN)/python -m support.system_parts
	touch $@

demo: $(READY)
	$(BIN)/reenact demo

# The tests start hundreds of processes: none of them should have to compile what all of them import.
compiled: $(TESTED)
	$(BIN)/python -m compileall -q -j 0 src tests

test: $(TESTED) $(PARTS) check compiled
	$(BIN)/python -m pytest -n auto --dist worksteal

test-long: $(TESTED) $(PARTS) compiled
	REENACT_LONG=1 $(BIN)/python -m pytest -n auto --dist worksteal

check: $(TESTED)
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy

format: $(TESTED)
	$(BIN)/ruff format -q .
	$(BIN)/ruff check -q --fix .

test-pythons: $(TESTED)
	bash tests/pythons.sh

# Agent frameworks, and openai 2.x: three environments, since what they need cannot live together.
.venvs/%/.ready: pyproject.toml
	$(PYTHON) -m venv .venvs/$*
	.venvs/$*/bin/python -m pip install -q --upgrade "pip>=25.1"
	.venvs/$*/bin/python -m pip install -q -e . --group test --group $*
	touch $@

test-frameworks: .venvs/frameworks/.ready .venvs/frameworks-newest/.ready .venvs/crewai/.ready
	REENACT_FRAMEWORKS=openai-2 .venvs/frameworks/bin/python -m pytest tests/frameworks
	REENACT_LONG=1 .venvs/frameworks/bin/python -m pytest -n auto --dist worksteal tests/sdk -k "openai- or cohere- or ollama-"
	REENACT_FRAMEWORKS=newest .venvs/frameworks-newest/bin/python -m pytest tests/frameworks
	REENACT_FRAMEWORKS=crewai .venvs/crewai/bin/python -m pytest tests/frameworks

test-neighbours: .venvs/tracers/.ready
	REENACT_TRACERS=1 .venvs/tracers/bin/python -m pytest tests/neighbours/apart

# Older versions of the SDKs and libraries, each in an environment of its own under .venvs.
test-versions: $(TESTED)
	cd tests && ../$(BIN)/python -m versions

# The order of the source tree in numbers; BEFORE=REV puts another commit beside it.
house: $(TESTED)
	PYTHONPATH=tests $(BIN)/python -m support.house $(if $(BEFORE),--before $(BEFORE)) $(if $(LIST),--list)

# The pictures of the viewer in the docs, taken in the browser of the tests.
screenshots: $(BROWSER)
	$(BIN)/python docs/images/viewer.py

bench: $(TESTED)
	$(BIN)/python -m pip install -q --group bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venvs
