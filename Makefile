# Two commands set everything up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PURELIB := python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
# What a candidate's process imports. It cannot keep modules that it compiles, so these are compiled
# here, on all cores. All others are compiled when they are first imported. A file for another
# version of Python does not compile, which is no failure.
CONFINED := torch triton numpy sympy mpmath networkx

.PHONY: base install demo test test-inspect test-mini check style size site format clean

# What a user needs, which is enough for the demo.
base: $(VENV)/.base
# What the tests need too.
install: $(VENV)/.installed

$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 ...")'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(call install_and_compile,.)
	touch $@

$(VENV)/.installed: $(VENV)/.base
	$(call install_and_compile,'.[dev]')
	touch $@

define install_and_compile
$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable $(1)
-cd "$$($(BIN)/$(PURELIB))" && $(abspath $(BIN))/python -m compileall -qq -j 0 -x testing/_internal $(CONFINED)
endef

# Four turns on one problem and the second verdict; then all of it in detail.
demo: base
	$(BIN)/kernel-refinery run --problem level1_7_rms_norm --budget 4 --timing-seconds 0.5 --display plain -o runs/demo
	$(BIN)/kernel-refinery show runs/demo

# Three parts of the tests run at a time, because a test often waits. A candidate that is judged has
# the device to itself, whichever part asked.
# Without those that take more than 5 s each; `make check` has them all.
test: export PYTEST_ADDOPTS = -m 'not slow and not gpu and not thorough'
test: install
	$(MAKE) --jobs=3 $(PARTS)

# The longest ones first.
PARTS := test-experiments test-judge test-evaluator test-agent test-rest test-commands
test-judge: TESTS = tests/evaluator/judge/
test-experiments: TESTS = tests/experiments/
test-agent: TESTS = tests/agent/
test-evaluator: TESTS = $(filter-out tests/evaluator/judge/,$(wildcard tests/evaluator/*/))
test-commands: TESTS = $(wildcard tests/evaluator/test_*.py)
test-rest: TESTS = $(filter-out tests/evaluator/ tests/experiments/ tests/agent/,$(wildcard tests/*/)) \
	$(wildcard tests/test_*.py)

.PHONY: $(PARTS)
$(PARTS): install
	$(BIN)/python -m pytest $(TESTS)

# Inspect AI needs an older fsspec than constraints.txt has: an environment over ours, with its own.
INSPECT := .inspect

test-inspect: install
	test -d $(INSPECT) || $(BIN)/python -m venv $(INSPECT)
	$(BIN)/$(PURELIB) > "$$($(INSPECT)/bin/$(PURELIB))/ours.pth"
	$(INSPECT)/bin/pip install --quiet --disable-pip-version-check inspect-ai==0.3.285
	$(INSPECT)/bin/python -m pytest tests/experiments/export/test_inspect_log.py -m ''

# mini-swe-agent has an environment of its own; it calls our commands.
MINI := .mini

test-mini: install
	test -d $(MINI) || $(PYTHON) -m venv $(MINI)
	$(MINI)/bin/pip install --quiet --disable-pip-version-check mini-swe-agent==2.4.6
	PATH="$(abspath $(MINI))/bin:$$PATH" $(BIN)/python -m pytest tests/agent/session/test_mini_swe_agent.py -m ''

# MORE: other targets, which begin when there is room.
check: install
	$(MAKE) --jobs=3 style $(PARTS) $(MORE)

# How large each part is, and may be (.ci/limits.toml).
size:
	@$(PYTHON) .ci/size.py

style: install size
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) site

# The pages as a site in .site/html. A broken link fails.
PAGES := README.md ARCHITECTURE.md CHANGELOG.md CITATION.cff docs experiments/README.md \
	experiments/results/README.md experiments/results/feedback-worth.md \
	experiments/bench/suites/wrong_candidate.py

site: install
	rm -rf .site && mkdir -p .site/pages
	tar -cf - $(PAGES) | tar -xf - -C .site/pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(INSPECT) $(MINI) .site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info
