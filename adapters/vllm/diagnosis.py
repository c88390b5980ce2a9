"""The checks of `ffwd doctor vllm`."""

from importlib.metadata import entry_points
from typing import Any

from ffwd.adapters.shared.diagnosis import (
    Finding,
    import_finding,
    plugin_finding,
    source_findings,
    tokenizer_findings,
)
from ffwd.adapters.vllm import SUPPORTED_VERSIONS, minor_version, register, supported
from ffwd.adapters.vllm.surface import changed

_RUNNER = "VLLM_USE_V2_MODEL_RUNNER"
_ON_V1 = "forced tokens are drafts on the model runner V1, without asynchronous scheduling: {}"


def diagnose(tokenizer: Any = None) -> list[Finding]:
    """Check whether vLLM can use ffwd in this environment.

    Args:
        tokenizer: The model's, of transformers, mistral-common or tiktoken. It is checked as well.

    """
    missing = import_finding("vllm", supported())
    if missing is not None:
        return [missing]
    import vllm

    return [
        _version(vllm.__version__),
        plugin_finding("vllm.general_plugins", allowed_by="VLLM_PLUGINS"),
        _backend(),
        *_sources(vllm.__version__),
        _drafts(),
        *([] if tokenizer is None else tokenizer_findings(tokenizer)),
    ]


def _version(version: str) -> Finding:
    if minor_version(version) in SUPPORTED_VERSIONS:
        return Finding("ok", "version", f"vLLM {version}")
    return Finding("bad", "version", f"vLLM {version}", f"ffwd supports {supported()}")


def _backend() -> Finding:
    """Say whether vLLM takes the backend's name, and if not, why."""
    from pydantic import ValidationError
    from vllm.config import StructuredOutputsConfig

    register()
    try:
        StructuredOutputsConfig(backend="ffwd")
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        return Finding("bad", "backend", reason, "every other backend works as without ffwd")
    return Finding(
        "ok", "backend", "--structured-outputs-config.backend ffwd", _advice_for_python()
    )


def _advice_for_python() -> str:
    """Return what `LLM(...)` needs, whose options vLLM reads before it loads general plugins."""
    import vllm.envs as envs

    if not entry_points(group="vllm.platform_plugins", name="ffwd"):
        reason = "this installation has no entry point in vllm.platform_plugins"
    elif envs.VLLM_TARGET_DEVICE == "cpu":
        reason = "with VLLM_TARGET_DEVICE=cpu, vLLM loads no plugins of platforms"
    else:
        return ""
    return f"before LLM(...), call ffwd.adapters.vllm.register(): {reason}"


def _sources(version: str) -> list[Finding]:
    """Return what differs from the version that ffwd was tested with, or the newest of these."""
    minor = minor_version(version)
    tested = minor if minor in SUPPORTED_VERSIONS else SUPPORTED_VERSIONS[-1]
    name = "vLLM {}.{}.0".format(*tested)
    return source_findings(changed(tested), name)


def _drafts() -> Finding:
    """Say on which model runner vLLM would verify forced tokens, and why."""
    import vllm.envs as envs
    from vllm.triton_utils import HAS_TRITON

    if envs.VLLM_USE_V2_MODEL_RUNNER is False:
        return Finding("ok", "drafts", _ON_V1.format(f"{_RUNNER}=0"), f"unset {_RUNNER} for V2")
    if envs.VLLM_USE_V2_MODEL_RUNNER is None and not HAS_TRITON:
        return Finding("ok", "drafts", _ON_V1.format("Triton finds no device here"))
    return Finding(
        "ok", "drafts", "forced tokens are drafts on the model runner V2, asynchronously"
    )
