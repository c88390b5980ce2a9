#!/usr/bin/env bash
# Makes the environment of its own that an engine's tests run in (docs/engines.md).
#
#   tests/engines/make_environment.sh ENGINE [FOLDER]
#
# FOLDER is build/venv-ENGINE if it is not given. ffwd is taken from this tree, not installed: run
# the tests with `FOLDER/bin/python -m pytest -m engine tests/engines` from the repository's root.
# PYTHON is the interpreter (python3), JOBS how many compilers run at once (2).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What the tests themselves need, in every environment.
readonly TESTS_NEED=("pytest>=8" "hypothesis>=6.100" "numpy>=1.24")

make_venv() {
    [ -x "$1/bin/python" ] || "${PYTHON:-python3}" -m venv "$1"
    "$1/bin/python" -m pip install --quiet "${TESTS_NEED[@]}"
}

# There is a source distribution only; without the examples and the multimodal library it is compiled
# in ten minutes on two cores.
make_llama_cpp() {
    make_venv "$1"
    CMAKE_ARGS="-DLLAVA_BUILD=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF \
-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_CURL=OFF -DGGML_OPENMP=OFF" \
        CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}" \
        nice "$1/bin/python" -m pip install --quiet --no-binary llama-cpp-python \
        "llama-cpp-python==0.3.36" "gguf>=0.10" "jsonschema>=4.23"
}

engine=${1:-}
folder=${2:-$root/build/venv-$engine}
case "$engine" in
    llama-cpp) make_llama_cpp "$folder" ;;
    *)
        echo "usage: $0 llama-cpp [FOLDER]" >&2
        exit 2
        ;;
esac
