#!/usr/bin/env bash
# Makes the environment that an engine's tests run in (docs/engines.md):
#
#     tests/engines/make_environment.sh ENGINE [FOLDER]
#
# FOLDER is build/engines/ENGINE if it is not given. ffwd is taken from this tree, not installed. BASE
# is the interpreter of an environment with ffwd's own dependencies (`make setup`), for engines that
# share its packages; PYTHON the one for those that share none. What is there already is left as it is.
set -euo pipefail

ENGINE=${1:-}
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FOLDER=${2:-$ROOT/build/engines/$ENGINE}
PYTHON=${PYTHON:-python3}
BASE=${BASE:-$ROOT/.venv/bin/python}

# SGLang without what it requires for GPUs and media, beside the packages of BASE, torch, transformers
# and ffwd among them: its grammars, requests and sampling. With "engine" also what the whole engine
# imports on a processor; sgl_kernel, which has no wheel for one, is then that of sglang_stubs.
sglang() {
    local site
    "$BASE" -m venv --without-pip "$FOLDER"
    site=$("$FOLDER/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # The packages of BASE, and what is installed editable there. Nobody is to look on the network.
    "$BASE" - >"$site/base.pth" <<'END'
import sysconfig

packages = sysconfig.get_path("purelib")
print(f"import os, site; os.environ['HF_HUB_OFFLINE'] = '1'; site.addsitedir({packages!r})")
END
    "$BASE" -m pip install --quiet --no-deps --only-binary :all: --target "$site" --upgrade \
        sglang==0.5.23 \
        compressed-tensors==0.20.0 dill==0.4.1 einops==0.8.2 gguf==0.19.0 ipython==9.18.1 \
        loguru==0.7.3 msgspec==0.22.0 openai==3.54.0 orjson==3.13.0 \
        partial-json-parser==0.2.1.1.post7 pybase64 pyzmq==27.3.0 torchvision==0.29.2 \
        traitlets==5.16.1
    if [ "${1:-}" = engine ]; then
        "$BASE" -m pip install --quiet --no-deps --only-binary :all: --target "$site" --upgrade \
            setproctitle==1.3.8 uvloop==0.23.0
        echo "$ROOT/tests/engines/sglang_stubs" >"$site/stubs.pth"
    fi
}

case $ENGINE in
sglang) sglang ;;
sglang-engine) sglang engine ;;
*)
    echo "usage: $0 sglang|sglang-engine [FOLDER]" >&2
    exit 2
    ;;
esac
echo "$FOLDER/bin/python"
