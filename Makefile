# Each target does its own set-up in .venv; a second run needs no network.
SHELL := /bin/sh
PYTHON ?=
UV ?= uv
SCENARIO ?= scenarios/quickstart.yaml
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: report test oldest lint docs release-check lock gallery clean

report: $(READY)  ## one scenario into reports/: HTML, Markdown, tables
	@$(VENV)/bin/ragnb report $(SCENARIO)

# A file stays in one process: the cells of a notebook need each other, and set-ups of files are slow.
# One process more than cores: some tests wait for a browser or a server.
SPREAD := -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test: $(READY)  ## the whole suite on all cores: make test ARGS="-k weights" runs a part, ARGS="-n 0" in one process
	@$(PY) -m pytest $(SPREAD) $(ARGS)

# The statistics again, with the oldest packages that the bounds allow.
AGED := build/oldest
CORE := tests/weights tests/stats tests/comparison tests/traces/test_traces.py

# The oldest PyArrow calls what pandas 3 has deprecated.
oldest: $(AGED)/.ready  ## the statistics with the oldest packages that are allowed
	@$(AGED)/bin/python -m pytest -o addopts="--import-mode=importlib --strict-markers -ra -q" \
	  -W "ignore:make_block is deprecated" $(SPREAD) $(CORE) $(ARGS)

$(AGED)/.ready: requirements-oldest.lock $(READY)
	@mkdir -p build && $(PY) -m venv --clear $(AGED)
	@$(AGED)/bin/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements-oldest.lock
	@$(AGED)/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lint: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

docs: $(READY)  ## the site into build/docs: open build/docs/en/index.html; a warning is an error
	@$(PY) -m sphinx -q -W --keep-going -c docs -D language=en docs/en build/docs/en
	@$(PY) -m sphinx -q -W --keep-going -c docs -D language=zh_CN docs/zh build/docs/zh
	@echo "Site: build/docs/en/index.html, build/docs/zh/index.html"

release-check: $(READY)  ## fresh environments, the action, installed: half an hour, 10 GB, a network
	@$(PY) -m pytest tests/release $(ARGS)
	@for table in build/release/*.md; do [ ! -f "$$table" ] || cat "$$table"; done

# What ragnb report needs of the extra notebook: all but JupyterLab and its widgets.
REPORT := ipykernel matplotlib nbconvert papermill seaborn

# What the core's tests need beside it, and with what they compute.
OLDEST := --extra duckdb --extra readers
TOOLS := hatchling hypothesis ipywidgets krippendorff matplotlib pytest pytest-xdist scikit-learn seaborn statsmodels

lock:  ## needs uv; the locks name no package index
	$(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	  --extra app --extra documents --extra judge --extra notebook --extra ragas --extra readers --group dev pyproject.toml -o requirements.lock
	$(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	  -c requirements.lock pyproject.toml -o requirements-core.lock
	printf '%s\n' $(REPORT) | $(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	  -c requirements.lock pyproject.toml - -o requirements-report.lock
	$(UV) pip compile --universal --no-emit-index-url --python-version 3.11 --resolution lowest-direct \
	  --extra notebook $(OLDEST) pyproject.toml -o build/oldest.txt
	printf '%s\n' $(TOOLS) | $(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	  -c build/oldest.txt $(OLDEST) pyproject.toml - -o requirements-oldest.lock
	echo hatchling | $(UV) pip compile --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	  -c requirements.lock - -o requirements-build.lock

GALLERY := notebooks/00_quickstart.ipynb
LANGUAGE := codemirror_mode file_extension mimetype nbconvert_exporter pygments_lexer version

gallery: $(READY)  ## run the notebook that keeps its outputs anew, without times
	@$(PY) -m jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False $(GALLERY)
	@$(PY) -m nbstripout --keep-output --keep-count --keep-id \
	  --extra-keys "$(addprefix metadata.language_info.,$(LANGUAGE))" $(GALLERY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The stamp holds the folder's address: a venv that came along with a moved folder points at the old one.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

$(READY): requirements.lock pyproject.toml
	@$(PY) -m pip --version >/dev/null 2>&1 || { \
	  for py in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    "$$py" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && break; py=; \
	  done; \
	  if [ -z "$$py" ]; then \
	    echo "ragnb needs Python 3.11 or newer; python3 here is: $$(python3 --version 2>&1 || true)." >&2; \
	    echo "Install one, or name it: make PYTHON=/path/to/python3.12 $(or $(MAKECMDGOALS),report)" >&2; exit 1; \
	  fi; \
	  "$$py" -m venv --clear $(VENV) || { \
	    echo "$$py cannot make a virtual environment. Its venv or ensurepip part is missing;" >&2; \
	    echo "on Debian and Ubuntu: apt install python3-venv. Then run make again." >&2; exit 1; \
	  }; \
	}
	@echo "Installing what requirements.lock names into $(VENV) (once, a minute or two) ..."
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(PY) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo "$(CURDIR)" > $@
