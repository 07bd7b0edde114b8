# Everything happens in .venv; the stamp file makes a second call install nothing.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP  := $(VENV)/.installed
# One thread per test worker: two workers with two threads each would fight for two cores.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help install demo test crash lint format docs bench clean

help: ## Show this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## Make .venv and install the suite with the tested versions

# torch first and by its exact version: resolved as a range it would bring gigabytes of CUDA along.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Try make PYTHON=python3.12"; exit 2; }
	@test -d $(BIN) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# The demonstration's runs have a folder of their own; --resume makes a second call go on or skip what is done.
PDE_DEMO := --preset laptop --nu 1e-3 --num-train 60 --num-val 5 --num-test 10 --minutes 0.7 --resume
MRI_DEMO := --preset laptop --acc 2 --num-train 2 --minutes 0.7 --resume
demo: export MONARCH_RUNS := demo
demo: $(STAMP) ## Run both applications small: data, training, tables, figures
	$(BIN)/python -m pde.train $(PDE_DEMO) --model mno --name mno
	$(BIN)/python -m pde.train $(PDE_DEMO) --model fno --name fno
	$(BIN)/python -m pde.eval
	$(BIN)/python -m mri.train $(MRI_DEMO) --model msense --name msense
	$(BIN)/python -m mri.train $(MRI_DEMO) --model mcs --name mcs
	$(BIN)/python -m mri.train $(MRI_DEMO) --model unet --name unet
	$(BIN)/python -m mri.eval
	@echo "The U-Net, with its 7.8 million parameters, learns too little from two scans and a minute to beat plain SENSE."
	@echo "Both tables are above. The pages to look through are demo/pde/results/report.html and demo/mri/results/report.html."

test: $(STAMP) ## Run the whole test suite
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal

crash: $(STAMP) ## Try to break the suite: kills, full disks, damaged files, fuzzing (half an hour; MINUTES=1 EVERY=20 for less)
	$(ONE_THREAD) $(BIN)/python -m tests.crash --minutes $(or $(MINUTES),10) --every $(or $(EVERY),1)

lint: $(STAMP) ## ruff, ruff format --check, mypy, and pip-audit where it is installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if ! test -x $(BIN)/pip-audit; then echo "pip-audit is not installed: skipped"; exit 0; fi; \
	found=$$($(BIN)/pip-audit --skip-editable 2>&1); status=$$?; \
	if echo "$$found" | grep -qiE 'ConnectionError|NameResolution|Max retries|timed out'; \
	then echo "pip-audit could not reach its database: skipped"; else echo "$$found"; exit $$status; fi

format: $(STAMP) ## Let ruff sort, mend and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Every example of the gallery is run; warnings, and links within the site that lead nowhere, are errors.
docs: $(STAMP) ## Build the site into docs/_build/html
	@$(BIN)/python -c 'import sphinx_gallery, furo, myst_parser, sphinx_copybutton' 2>/dev/null || \
		$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

bench: $(STAMP) ## Speed and memory as ratios against peers
	$(BIN)/python -m benchmarks.monarch --quick
	$(BIN)/python -m benchmarks.models --quick
	$(BIN)/python -m benchmarks.navier_stokes speed
	$(BIN)/python -m benchmarks.fields darcy
	$(BIN)/python -m benchmarks.mri_data --quick
	$(BIN)/python -m benchmarks.pde --quick
	$(BIN)/python -m benchmarks.mri --quick

clean: ## Remove the environment and caches (runs/ and datasets/ stay)
	rm -rf $(VENV) docs/_build docs/auto_gallery .mypy_cache .ruff_cache .pytest_cache .hypothesis
