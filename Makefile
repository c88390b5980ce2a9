# Everything installs into $(VENV); nothing else of the system is touched. The virtual environment
# is made, and the native module is built again, whenever what they are made of has changed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
CARGO_MANIFEST := ffwd/native/Cargo.toml
# The benchmarks beside other crates are not part of the build.
BENCH_MANIFEST := maskbench/crates/Cargo.toml
# Nor are the fuzz targets.
FUZZ_MANIFEST := ffwd/native/fuzz/Cargo.toml
BUILT_FROM := pyproject.toml setup.py $(CARGO_MANIFEST) ffwd/native/Cargo.lock \
              $(shell find ffwd/native/src ffwd/native/crates -name '*.rs' -o -name Cargo.toml)

# Neither the demonstration nor a test may fetch a model.
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# clippy and the build of the module ask the same interpreter.
export PYO3_PYTHON := $(abspath $(BIN))/python

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo docs test quick develop setup suite vocabularies parsers check lint format rust-lint python-lint workflow-lint types stubs rust-test \
        rust-test-build oldest-rust python-test test-wheel coverage test-flaky engines hosts tsan asan miri instructions instructions-update gate gate-update bench-bpe fuzz \
        fuzz-smoke fuzz-server audit header clean

help:
	@echo 'make demo    records of short texts as JSON, from a small model, in four ways'
	@echo 'make test    all tests, Rust and Python'
	@echo 'make check   formatting, lints, types, stubs, counts and all tests: what CI runs'
	@echo 'make develop  the module in seconds after an edit, not optimised'
	@echo 'make quick   format, lints and unit tests of the crates that changed; CRATES=engine names some'
	@echo 'make docs    the site, into build/site; any warning is an error'
	@echo 'make format  rewrite the sources in the project'"'"'s format'
	@echo 'make setup   only the virtual environment, with every extra'
	@echo 'make suite   only the official JSON-Schema-Test-Suite, for the tests'
	@echo 'make vocabularies  only the vocabularies and chat templates of llama.cpp, for the tests'
	@echo 'make parsers  only the parsers of tool calls of vLLM, for the tests'
	@echo 'make engines  the tests with vLLM'"'"'s scheduler, SGLang'"'"'s grammars and outlines, in environments of their own'
	@echo 'make hosts    the tests of adapters with outlines, mlx-lm and others, and of clients, in environments of their own'
	@echo 'make test-wheel  the Python tests with the installed wheel, without the checkout on the path'
	@echo 'make coverage  the lines that the tests run, in Rust and in Python; fails under the floors'
	@echo 'make test-flaky  the tests with threads, FLAKY_RUNS times; stops at the first failure'
	@echo 'make oldest-rust  the tests of the core with the oldest Rust that is supported; installs it'
	@echo 'make tsan    the tests of threads under ThreadSanitizer; needs a nightly toolchain'
	@echo 'make asan    all tests of the core under AddressSanitizer; needs a nightly toolchain'
	@echo 'make miri    tests of small modules under Miri; needs a nightly toolchain'
	@echo 'make instructions  count the instructions of ten workloads, and compare with what is recorded'
	@echo 'make instructions-update  record them'
	@echo 'make gate    verdicts on the built-in corpus, compared with what is recorded'
	@echo 'make gate-update  record them'
	@echo 'make fuzz-smoke  every fuzz target on its corpus and on inputs near by, without libFuzzer'
	@echo 'make fuzz    fuzz all targets in turn, for FUZZ_MINUTES; needs nightly Rust and cargo-fuzz'
	@echo 'make fuzz-server  ask the server whatever its own description allows, for FUZZ_SERVER_MINUTES'
	@echo 'make header  write the header of the C library; needs cbindgen'
	@echo 'make bench-bpe  byte-pair encoding beside the crate that does it best'
	@echo 'make audit   licences, sources and known vulnerabilities of the dependencies'
	@echo 'make clean   remove what was built'

# --------------------------------------------------------------------------------- environments

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "ffwd needs Python 3.10 or later, and $(PYTHON) is " + sys.version)'
	@command -v cargo >/dev/null || { echo 'ffwd needs a Rust toolchain: cargo was not found' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The demonstration is over in seconds, so it is not worth the optimised build, which takes minutes.
$(VENV)/.installed-demo: $(BUILT_FROM) | $(BIN)/python
	SETUPTOOLS_RUST_CARGO_PROFILE=trial $(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.installed: $(BUILT_FROM) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[transformers,demo,bench,test,dev,docs]'
	touch $@ $(VENV)/.installed-demo

setup: $(VENV)/.installed

# The source distribution of jsonschema carries the official JSON-Schema-Test-Suite; no wheel does.
SUITE := build/json-schema-test-suite
SUITE_CARRIER := jsonschema-4.26.0

$(SUITE): | $(VENV)/.installed
	rm -rf build/suite-carrier $@
	$(BIN)/python -m pip download --quiet --no-deps --no-binary jsonschema \
		--dest build/suite-carrier $(subst -,==,$(SUITE_CARRIER))
	tar -xzf build/suite-carrier/$(SUITE_CARRIER).tar.gz -C build/suite-carrier
	mv build/suite-carrier/$(SUITE_CARRIER)/json $@
	rm -rf build/suite-carrier

suite: $(SUITE)

# So does that of llama-cpp-python: vocabularies and chat templates of real models, of which the
# wheel that it builds has none. It is unpacked and not built.
MODELS := build/llama-cpp-python
MODELS_CARRIER := llama_cpp_python-0.3.36

$(MODELS): | $(VENV)/.installed
	rm -rf build/models-carrier $@
	$(BIN)/python -m pip download --quiet --no-deps --no-binary llama-cpp-python \
		--dest build/models-carrier $(subst _,-,$(subst -,==,$(MODELS_CARRIER)))
	mkdir build/models-carrier/files
	tar -xzf build/models-carrier/$(MODELS_CARRIER).tar.gz -C build/models-carrier/files \
		--strip-components=3 $(MODELS_CARRIER)/vendor/llama.cpp/models
	mv build/models-carrier/files $@
	rm -rf build/models-carrier

vocabularies: $(MODELS)

# Parsers of tool calls that the tests give answers to: vLLM's, of which the package for TPUs is a
# wheel without compiled code. Its own dependencies are not installed, only those of the parsers that
# the environment lacks; all apart from $(VENV), for they are needed by one process of the tests.
# Some are compiled, so each version of Python has a folder of its own.
PARSERS_FOR = $(BIN)/python
PARSERS_CARRIER := vllm-tpu==0.21.0
PARSERS_NEED := openai==3.54.0 openai-harmony==0.0.8 partial-json-parser==0.2.1.1.post7 ijson==3.6.0 \
                cachetools==6.2.1 cbor2==6.2.1 cloudpickle==3.1.2 msgspec==0.22.0 py-cpuinfo==9.0.0 \
                gguf==0.19.0 pybase64==1.5.1 pyzmq==27.3.0 uvloop==0.23.0

parsers: $(VENV)/.installed
	@$(MAKE) --no-print-directory PARSERS_FOR='$(PARSERS_FOR)' \
		build/parsers-$$($(PARSERS_FOR) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

build/parsers-%:
	rm -rf build/parsers-carrier $@
	$(PARSERS_FOR) -m pip download --quiet --no-deps --only-binary :all: \
		--dest build/parsers-carrier $(PARSERS_CARRIER)
	$(PARSERS_FOR) -m zipfile -e build/parsers-carrier/*.whl build/parsers-carrier/vllm
	$(PARSERS_FOR) -m pip install --quiet --no-deps --only-binary :all: \
		--target build/parsers-carrier/packages $(PARSERS_NEED)
	mkdir $@
	mv build/parsers-carrier/vllm build/parsers-carrier/packages $@
	rm -rf build/parsers-carrier

# --------------------------------------------------------------------------------------- the job

demo: $(VENV)/.installed-demo
	$(BIN)/ffwd demo

# ---------------------------------------------------------------------------------------- checks

check: lint docs instructions gate engines fuzz-smoke test

lint: rust-lint python-lint workflow-lint types stubs

rust-lint: setup
	cargo fmt --all --manifest-path $(CARGO_MANIFEST) --check
	cargo fmt --manifest-path $(BENCH_MANIFEST) --check
	cargo fmt --manifest-path $(FUZZ_MANIFEST) --check
	cargo clippy --locked --manifest-path $(CARGO_MANIFEST) --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --manifest-path $(CARGO_MANIFEST) --workspace --no-deps --quiet
	cargo clippy --locked --manifest-path $(FUZZ_MANIFEST) --all-targets --no-default-features -- -D warnings
	cargo clippy --locked --manifest-path $(BENCH_MANIFEST) --all-targets -- -D warnings

python-lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest --quiet tests/test_words.py

# Both without the network.
workflow-lint: setup
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github

# mypy does not know that adapters/ is ffwd.adapters, so it is shown the tree as it is installed.
types: setup
	rm -rf build/typed
	mkdir -p build/typed/ffwd
	ln -s $(addprefix ../../../,$(filter-out ffwd/native ffwd/__pycache__ %.so,$(wildcard ffwd/*))) build/typed/ffwd
	ln -s ../../../adapters build/typed/ffwd/adapters
	ln -s ../../maskbench build/typed/maskbench
	cd build/typed && $(abspath $(BIN))/python -m mypy --config-file ../../pyproject.toml -p ffwd -p maskbench
	$(BIN)/basedpyright --pythonpath $(BIN)/python --level error

# The stub has no type of these packages, and reading them takes ten times as long as the stub.
stubs: setup
	mkdir -p build
	printf '[mypy]\nfollow_imports = silent\n[mypy-numpy.*,torch.*,transformers.*]\nfollow_imports = skip\n' >build/stubs.ini
	$(BIN)/python -m mypy.stubtest ffwd._native --mypy-config-file build/stubs.ini

# The reference is read from the sources, laid out as they are installed: adapters/ is ffwd.adapters.
DOCUMENTED := build/documented/ffwd
docs: export NO_MKDOCS_2_WARNING := 1
docs: setup
	rm -rf build/documented build/site
	mkdir -p $(DOCUMENTED)
	ln -s $(addprefix ../../../,$(filter-out ffwd/native ffwd/adapters ffwd/__pycache__ %.so,$(wildcard ffwd/*))) $(DOCUMENTED)
	ln -s ../../../adapters $(DOCUMENTED)/adapters
	$(BIN)/python -m mkdocs build --strict

# The module in place of the installed one, built in seconds after an edit and not optimised.
develop:
	@test -e $(VENV)/.installed || { echo 'make setup first: it makes the environment' >&2; exit 1; }
	CARGO_INCREMENTAL=1 SETUPTOOLS_RUST_CARGO_PROFILE=trial $(BIN)/python setup.py --quiet build_rust --inplace

# The crates of the core that differ from the last commit, by the names of their folders.
CRATES ?= $(shell git status --porcelain -- ffwd/native/crates | sed -n 's|.*ffwd/native/crates/\([^/]*\)/.*|\1|p' | sort -u)

# No environment is made, and nothing is installed.
quick:
	cargo fmt --all --manifest-path $(CARGO_MANIFEST) --check
	@test -n '$(CRATES)' || echo 'No crate has changed; name some, such as CRATES=engine.'
	$(if $(CRATES),cargo clippy --locked --manifest-path $(CARGO_MANIFEST) --all-targets $(CRATES:%=-p ffwd-%) -- -D warnings)
	$(if $(CRATES),cargo test --locked --manifest-path $(CARGO_MANIFEST) --lib $(CRATES:%=-p ffwd-%))

# The Python tests come last: their closing line is the result.
test: rust-test python-test

rust-test:
	cargo test --locked --manifest-path $(CARGO_MANIFEST)

# What `rust-test` runs.
rust-test-build:
	cargo test --locked --no-run --manifest-path $(CARGO_MANIFEST)

# The tests of the core, and the module, with the oldest Rust that the manifest promises.
OLDEST_RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' $(CARGO_MANIFEST))
oldest-rust:
	rustup toolchain install $(OLDEST_RUST) --profile minimal
	CARGO_TARGET_DIR=$(CURDIR)/build/oldest-rust cargo +$(OLDEST_RUST) test --locked --manifest-path $(CARGO_MANIFEST)
	CARGO_TARGET_DIR=$(CURDIR)/build/oldest-rust PYO3_PYTHON=$(PYTHON) cargo +$(OLDEST_RUST) check --locked --manifest-path $(CARGO_MANIFEST) --package ffwd-native

# Tests whose threads share something, and none that takes long: ThreadSanitizer takes ten times as
# long, and it builds the standard library again.
NIGHTLY := nightly
NIGHTLY_CARGO := cargo +$(NIGHTLY)
HOST := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
THREAD_TESTS := eight_threads work_that_is_shared_out section:: many_threads threads_that_intern threads_see \
                built_by_many_threads shared_between_threads any_number_of_threads nothing_is_lost \
                slots_are_read threads_that_evict threads_that_are_refused a_batch_is_filled batches_are_their_texts

tsan:
	@test -d "$$(rustup run $(NIGHTLY) rustc --print sysroot 2>/dev/null)/lib/rustlib/src" || \
		{ echo 'make tsan needs: rustup toolchain install $(NIGHTLY) --component rust-src' >&2; exit 1; }
	RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=$(CURDIR)/build/tsan $(NIGHTLY_CARGO) test --locked \
		--manifest-path $(CARGO_MANIFEST) -Zbuild-std --target $(HOST) --lib --test threads -- $(THREAD_TESTS)

# Its frames are larger, so threads of tests get larger stacks.
asan:
	@cargo +$(NIGHTLY) --version >/dev/null 2>&1 || { echo 'make asan needs: rustup toolchain install $(NIGHTLY)' >&2; exit 1; }
	RUSTFLAGS=-Zsanitizer=address RUST_MIN_STACK=67108864 CARGO_TARGET_DIR=$(CURDIR)/build/asan $(NIGHTLY_CARGO) test --locked \
		--manifest-path $(CARGO_MANIFEST) --target $(HOST) --lib --tests

# Of unsafe code the crate has its allocator only; else Miri looks at how it uses that of dependencies.
# It is slow, so the tests are few. With no isolation, for they read the clock.
MIRI_TESTS := meter::heap section::tests::a_share section::tests::own mask::slots mask::recent logits::tests::rows

miri:
	@rustup run $(NIGHTLY) cargo miri --version >/dev/null 2>&1 || \
		{ echo 'make miri needs: rustup toolchain install $(NIGHTLY) --component miri,rust-src' >&2; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=$(CURDIR)/build/miri $(NIGHTLY_CARGO) miri test --locked \
		--manifest-path $(CARGO_MANIFEST) --lib -- $(MIRI_TESTS)

# Not part of `check`. A test that fails once in a hundred runs is broken: try it with busy loops
# beside it (`for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done`), and on one processor
# (`taskset -c 0 make test-flaky`).
FLAKY_RUNS ?= 100
THREAD_FILES := $(addprefix tests/,engine/test_threads.py engine/test_fork.py engine/test_interruptions.py \
                engine/test_memory.py engine/test_bitmask.py engine/test_logits.py engine/test_engine_limits.py)

test-flaky: setup
	cargo test --quiet --locked --no-run --manifest-path $(CARGO_MANIFEST) --lib --test threads
	@for run in $$(seq $(FLAKY_RUNS)); do \
		echo "run $$run of $(FLAKY_RUNS)"; \
		cargo test --quiet --locked --manifest-path $(CARGO_MANIFEST) --lib --test threads -- $(THREAD_TESTS) || exit 1; \
		$(BIN)/python -m pytest --quiet $(THREAD_FILES) || exit 1; \
	done

# A file's tests run in one process, for they share what is costly to make. The order is tests/conftest.py's.
# The order of sets differs from run to run, and is the one seed that is not written in a test.
SPREAD := --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
python-test: setup suite vocabularies parsers
	PYTHONHASHSEED=$${PYTHONHASHSEED:-$$($(BIN)/python -c 'import random; print(random.randrange(1, 2**32))')} \
		$(BIN)/python -m pytest $(SPREAD) --durations 20 --durations-min 5

# The tests with the wheel in place of the checkout: from another folder, on whose path only the
# tests' own folders and maskbench are. The wheel is that of the source distribution.
AWAY := build/away
test-wheel: suite vocabularies
	rm -rf $(AWAY)
	mkdir -p $(AWAY)/from
	$(PYTHON) -m venv $(AWAY)/venv
	$(AWAY)/venv/bin/python -m pip install --quiet build
	$(AWAY)/venv/bin/python -m build --outdir $(AWAY)
	$(AWAY)/venv/bin/python -m pip install --quiet "$$(ls $(CURDIR)/$(AWAY)/*.whl)[transformers,demo,bench,test,dev,docs]"
	$(MAKE) parsers PARSERS_FOR=$(AWAY)/venv/bin/python
	ln -s ../../../maskbench $(AWAY)/from
	cd $(AWAY)/from && PYTHONPATH=. ../venv/bin/pytest -c ../../../pyproject.toml --rootdir ../../.. \
		$(SPREAD) ../../../tests

# The lines that tests run, of what is installed, with floors: what is added has tests. Rust
# that only converts for Python is tested from Python alone, and not counted.
RUST_LINES := 87
PYTHON_LINES := 94
RUST_UNCOUNTED := /(tests|benches)/|/(tests|test_[a-z_]+)\.rs$$|ffwd/native/src/
coverage: setup suite vocabularies parsers
	@cargo llvm-cov --version >/dev/null 2>&1 || { echo 'make coverage needs: cargo install cargo-llvm-cov; rustup component add llvm-tools' >&2; exit 1; }
	CARGO_TARGET_DIR=$(CURDIR)/build/coverage cargo llvm-cov --workspace --exclude ffwd-native --locked --manifest-path $(CARGO_MANIFEST) --summary-only \
		--ignore-filename-regex '$(RUST_UNCOUNTED)' --fail-under-lines $(RUST_LINES)
	$(BIN)/python -m pytest $(SPREAD) --cov --cov-report term:skip-covered --cov-fail-under $(PYTHON_LINES)

# The tests of engines that need no engine as a whole: vLLM's scheduler, of each version that is
# supported, and what SGLang has of grammars.
ENGINES := build/engines
SCHEDULERS := $(shell tests/integrations/make_environment.sh --schedulers)
VLLM_TESTS := $(addprefix tests/integrations/test_vllm_,$(addsuffix .py,backend features runner_v2 scheduler_stress step upstream_patch))
SGLANG_TESTS := $(addprefix tests/integrations/test_sglang_,$(addsuffix .py,drafts grammar plugin reasoning scheduler))

HOSTS := $(shell tests/integrations/make_environment.sh --hosts)

$(SCHEDULERS:%=$(ENGINES)/%/.made) $(HOSTS:%=$(ENGINES)/%/.made): tests/integrations/make_environment.sh | $(VENV)/.installed
	rm -rf $(@D)
	BASE=$(abspath $(BIN))/python tests/integrations/make_environment.sh $(notdir $(@D)) $(@D)
	touch $@

VLLM := $(filter vllm-%,$(SCHEDULERS))
# That of outlines is as quick as these; the other hosts are apart.
engines: $(VLLM:%=engines-%) engines-sglang host-outlines

# The kernels of vLLM's runner run in Triton's interpreter, which needs no device.
engines-vllm-%: $(ENGINES)/vllm-%/.made
	TRITON_INTERPRET=1 CUDA_VISIBLE_DEVICES= $(ENGINES)/vllm-$*/bin/python -m pytest -m engine $(VLLM_TESTS)

engines-sglang: $(ENGINES)/sglang/.made
	$(ENGINES)/sglang/bin/python -m pytest -m engine $(SGLANG_TESTS)

# But for outlines not part of `check`: each adapter of a library with the library itself, on a processor.
hosts: $(HOSTS:%=host-%)

host-outlines: HOST_TESTS := test_outlines.py
host-mlx-lm: HOST_TESTS := test_mlx_lm.py test_mlx_vlm.py test_outlines_mlx_lm.py
host-onnxruntime-genai: HOST_TESTS := test_onnxruntime_genai.py
host-genlm-control: HOST_TESTS := test_genlm_control.py
host-exllamav3: HOST_TESTS := test_exllamav3.py
host-lmdeploy: HOST_TESTS := test_lmdeploy.py
host-clients: HOST_TESTS := test_clients.py test_client_programs.py
host-%: $(ENGINES)/%/.made
	$(ENGINES)/$*/bin/python -m pytest -m engine $(addprefix tests/integrations/,$(HOST_TESTS))

# Says so and does nothing where valgrind is missing. Counts depend on the compiler, so they are
# compared only with those of the same one.
instructions: setup
	$(BIN)/python -m maskbench tools instructions

instructions-update: setup
	$(BIN)/python -m maskbench tools instructions --update

# Verdicts do not depend on the machine; a schema that is not in the baseline fails, too.
GATE_BASELINE := maskbench/baselines/builtin.json
# In both orders of properties.
GATE_ENGINES := ffwd,ffwd-any
GATE_RESULTS := build/gate.json

$(GATE_RESULTS): setup
	$(BIN)/python -m maskbench run --engine $(GATE_ENGINES) --no-forced --out $@
.PHONY: $(GATE_RESULTS)

gate: $(GATE_RESULTS)
	$(BIN)/python -m maskbench compare $(GATE_BASELINE) $<

gate-update: $(GATE_RESULTS)
	$(BIN)/python -m maskbench baseline $< $(GATE_BASELINE)

# A stable toolchain and no C++ compiler are enough.
fuzz-smoke:
	cargo test --locked --no-default-features --manifest-path $(FUZZ_MANIFEST)

# docs/fuzzing.md. What is found is kept in FUZZ_OUT.
FUZZ_MINUTES ?= 240
FUZZ_OUT ?= build/fuzz
FUZZ_SANITIZER ?= none

fuzz: setup
	@cargo +nightly --version >/dev/null 2>&1 || { echo 'make fuzz needs a nightly toolchain of Rust: rustup toolchain install nightly' >&2; exit 1; }
	@command -v cargo-fuzz >/dev/null || { echo 'make fuzz needs cargo-fuzz: cargo install cargo-fuzz' >&2; exit 1; }
	cd ffwd/native && cargo +nightly fuzz build --sanitizer $(FUZZ_SANITIZER) --target-dir fuzz/target
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	$(BIN)/python tests/fuzzing/campaign.py --out $(FUZZ_OUT) --minutes $(FUZZ_MINUTES)

# schemathesis, on what /openapi.json says.
FUZZ_SERVER_MINUTES ?= 30
fuzz-server: setup
	$(BIN)/python -m pip install --quiet --editable '.[fuzz]'
	$(BIN)/python tests/fuzzing/server.py --out $(FUZZ_OUT)/server --minutes $(FUZZ_SERVER_MINUTES)

# Not part of `check`: what it finds changes without a change here, and it needs the network.
audit:
	PYTHON=$(PYTHON) .ci/audit

# The header of the C library, from its sources: needs cargo install cbindgen.
CAPI := ffwd/native/crates/capi
header:
	cd $(CAPI) && cbindgen --config cbindgen.toml --crate ffwd-capi --output include/ffwd.h .

# Fetches and builds the crates that it compares with.
bench-bpe:
	cargo bench --manifest-path $(BENCH_MANIFEST) --bench bpe

# Threads that share one grammar beside threads with one each.
bench-readers:
	cargo bench --manifest-path $(BENCH_MANIFEST) --bench readers

format: setup
	cargo fmt --all --manifest-path $(CARGO_MANIFEST)
	cargo fmt --manifest-path $(BENCH_MANIFEST)
	cargo fmt --manifest-path $(FUZZ_MANIFEST)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build dist *.egg-info ffwd/native/target ffwd/native/fuzz/target ffwd/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis
