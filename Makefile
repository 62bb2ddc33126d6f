# The commands of the README and of CONTRIBUTING.md. Each installs what it needs into .venv and nothing outside this folder.
PYTHON ?= python3
BIN := .venv/bin
# What is installed: the package and the explainers that it is compared with, and what its developers need.
PACKAGE := .venv/.package
DEV := .venv/.dev
# Compiled modules are kept even where the environment says otherwise: without them every `import torch` takes ten seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test faults lint types docs drawing pictures peers install clean

demo: $(PACKAGE)
	$(BIN)/protopfaith demo

test: lint types
	# One thread per process: small tensors gain nothing from more. Three processes for two cores: some tests only wait.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# Kills every command at random moments and compares bits; about half an hour. Not part of the tests.
faults: install
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.robustness.faults

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

# The documentation, into site/; fails on a broken link, an old drawing, or anything loaded from elsewhere.
docs: install
	$(BIN)/python scripts/draw_imports.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python scripts/check_site.py site

# The drawing of the packages in the documentation.
drawing: install
	$(BIN)/python scripts/draw_imports.py

# The pictures of the README, from the demo's run; needs chromium.
pictures: install
	$(BIN)/python scripts/take_pictures.py

# Networks of other programs, built and saved by their own code, for the tests of `convert`. In an environment of their own:
# CaBRNet pins old versions of much else. Without it those tests are skipped.
peers: install
	test -x .peers/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python .peers
	$(BIN)/uv pip install --quiet --python .peers/bin/python cabrnet==1.2
	OMP_NUM_THREADS=1 .peers/bin/python scripts/build_peers.py .peers/models

install: $(DEV)

# uv resolves and downloads in seconds what pip needs minutes for; pip fetches uv itself.
$(PACKAGE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[compare,serve]'
	touch $@

$(DEV): $(PACKAGE)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .peers build dist site
