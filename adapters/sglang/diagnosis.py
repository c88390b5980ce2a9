"""The checks of `ffwd doctor sglang`."""

from typing import Any

from ffwd.adapters.sglang import (
    BACKEND_NAME,
    SUPPORTED_VERSION,
    installed_version,
    is_supported,
    register,
    registered,
)
from ffwd.adapters.sglang.surface import changed
from ffwd.adapters.shared.diagnosis import (
    Finding,
    import_finding,
    plugin_finding,
    source_findings,
    tokenizer_findings,
)


def diagnose(tokenizer: Any = None) -> list[Finding]:
    """Check whether SGLang can use ffwd in this environment.

    Args:
        tokenizer: The model's, which is checked as well.

    """
    missing = import_finding("sglang", f"SGLang {SUPPORTED_VERSION}")
    if missing is not None:
        return [missing]
    version = installed_version()
    advice = "" if is_supported(version) else f"install sglang=={SUPPORTED_VERSION}"
    return [
        Finding("bad" if advice else "ok", "version", f"SGLang {version or 'unknown'}", advice),
        plugin_finding("sglang.srt.plugins", allowed_by="SGLANG_PLUGINS"),
        _backend(),
        *source_findings(changed(), f"SGLang {SUPPORTED_VERSION}"),
        *([] if tokenizer is None else tokenizer_findings(tokenizer)),
    ]


def _backend() -> Finding:
    register()
    if registered():
        return Finding("ok", "backend", f"--grammar-backend {BACKEND_NAME}")
    return Finding("bad", "backend", "SGLang does not know it: its log says why")
