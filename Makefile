# What can be done with a checkout. Everything sets itself up: Debian 12 with python3.11 is enough.
#   make encode     a sample clip, encoded; PSNR, bitrate, frames per second, where the stream is
#   make test       the fast tests (make test-all: with the slow sweeps)
#   make check K=NAME  the tests of one file, as mode_decision: its definition, its CUDA twin, a small stream
#   make test-install  the package in an environment of its own, as pip installs it, and a clip through it
#   make lint       ruff and mypy
#   make bench      speed beside x264, if PyAV has it
#   make kernels    the CUDA kernels compiled for all architectures, if nvcc is there (else at first use)
#   make wheel      the package in dist/, with compiled kernels of the CPU, and of GPUs if nvcc is there
#   make docs       what is made of docs/ and README.md: options, list of files, table of times

BASE_PYTHON ?= python3.11
VENV        ?= .venv
PYTHON      := $(VENV)/bin/python
WORKERS     ?= 2
SIZE        ?= 640x360
FRAMES      ?= 60
CRF         ?= 23
CLIP        := out/sample_$(SIZE).yuv
STREAM      := out/sample_$(SIZE).264

.PHONY: encode test test-all check test-install lint bench kernels wheel docs setup clean

encode: $(VENV)/.ready
	$(PYTHON) samples/make_clip.py $(CLIP) --size $(SIZE) --frames $(FRAMES)
	$(PYTHON) -m h264lite encode $(CLIP) $(STREAM) --fps 30 --crf $(CRF)
	@echo "The stream is $(STREAM)"

# Tests start many processes, which take half the time if Python may keep its bytecode
test test-all check: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.ready-test
	$(PYTHON) -m h264lite.encoder.compile_kernels
	$(PYTHON) -m pytest -n $(WORKERS) -m "not slow and not gpu"

test-all: $(VENV)/.ready-test
	$(PYTHON) -m pytest -n $(WORKERS) -m "not gpu"

check: $(VENV)/.ready-test
	$(PYTHON) tests/check.py $(K)

test-install: $(VENV)/bin/python
	tests/installed.sh $(PYTHON)

lint: $(VENV)/.ready-dev
	$(PYTHON) -m ruff check .
	@mkdir -p .mypy_cache && ln -sfn .. .mypy_cache/h264lite  # mypy takes the package's name from its folder's
	MYPYPATH=.mypy_cache $(PYTHON) -m mypy $(foreach p,jit standard sound mp4 cpu_simd cuda_src scheduler encoder decoder analysis reader report cluster cli papers.kernels compat,-p h264lite.$(p))

bench: $(VENV)/.ready-dev
	$(PYTHON) benchmarks/speed.py

kernels: $(VENV)/.ready
	$(PYTHON) -m h264lite.cuda_src.runtime.compiler --if-nvcc

wheel: $(VENV)/.ready
	H264LITE_KERNELS=1 H264LITE_FATBIN=1 $(PYTHON) -m pip wheel -q --disable-pip-version-check --no-deps -w dist .

docs: $(VENV)/.ready
	$(PYTHON) docs/make_options.py docs/options.md
	$(PYTHON) docs/make_x264.py docs/x264.md
	$(PYTHON) docs/make_files.py docs/files.md
	$(PYTHON) docs/make_times.py README.md

setup: $(VENV)/.ready-dev

clean:
	rm -rf out build dist

# The environment, in steps of what each goal needs. A step is done again when the list of packages changes.
$(VENV)/bin/python:
	@command -v $(BASE_PYTHON) >/dev/null || { echo "$(BASE_PYTHON) is missing: apt-get install python3.11, or \
	make BASE_PYTHON=python3.12"; exit 1; }
	@$(BASE_PYTHON) -c 'import ensurepip' 2>/dev/null || command -v virtualenv >/dev/null || \
	{ echo "$(BASE_PYTHON) cannot make environments: apt-get install python3-venv"; exit 1; }
	@if $(BASE_PYTHON) -c 'import ensurepip' 2>/dev/null; then $(BASE_PYTHON) -m venv $(VENV); \
	else virtualenv -q -p $(BASE_PYTHON) $(VENV); fi

$(VENV)/.ready: setup.cfg | $(VENV)/bin/python
	$(PYTHON) -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.ready-test: setup.cfg | $(VENV)/bin/python
	$(PYTHON) -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.ready

$(VENV)/.ready-dev: setup.cfg | $(VENV)/bin/python
	$(PYTHON) -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.ready $(VENV)/.ready-test
