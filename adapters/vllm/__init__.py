"""vLLM: ffwd as a backend of structured outputs, `--structured-outputs-config.backend ffwd`.

vLLM calls `register` by itself, through the entry point in `vllm.general_plugins`, in each of its
processes. `LLM(...)` reads its options before. So `announce` makes the name known earlier, through
the entry point in `vllm.platform_plugins`. Nothing of vLLM is imported before.
"""

import logging

SUPPORTED_VERSIONS = ((0, 31), (0, 32), (0, 33))
"""The minor versions of vLLM that this adapter is tested with."""

_logger = logging.getLogger("vllm.plugins.ffwd")


def register() -> None:
    """Register the backend `ffwd` with vLLM; repeated calls do nothing.

    It raises nothing. An unsupported version of vLLM works as without ffwd, and a request that
    names the backend gets an error with the reason.
    """
    import vllm

    version = vllm.__version__
    minor = minor_version(version)
    if minor not in SUPPORTED_VERSIONS:
        _refuse(f"ffwd supports {supported()}, and this is vLLM {version}")
        return
    # An exception here would keep vLLM from starting, even with another backend.
    try:
        from ffwd.adapters.vllm.patches import extend
        from ffwd.adapters.vllm.surface import check

        check(minor)
        extend()
    except Exception as error:
        _logger.debug("ffwd could not be added to vLLM %s", version, exc_info=True)
        _refuse(f"this vLLM {version} is not as it was released: {type(error).__name__}: {error}")


def announce() -> None:
    """Let `LLM(...)` take the backend's name, and register the backend once it is named.

    vLLM calls it when it looks for its platform, which ffwd is not: the result is None. It raises
    nothing, and an unsupported version is left to `register`.
    """
    import vllm

    from ffwd.adapters.vllm.naming import CONFIG_MODULE, when_imported

    if minor_version(vllm.__version__) in SUPPORTED_VERSIONS:
        when_imported(CONFIG_MODULE, _name)


def _name() -> None:
    try:
        from ffwd.adapters.vllm.naming import extend_config

        extend_config(register=register)
    except Exception:
        _logger.debug("LLM(...) does not know ffwd before it is registered", exc_info=True)


def minor_version(version: str) -> tuple[int, int] | None:
    """Return `(0, 33)` for `"0.33.1"`; None for another form, as of a build from source."""
    parts = version.split(".")
    if len(parts) < 3 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return int(parts[0]), int(parts[1])


def supported() -> str:
    """Return the supported versions, for people."""
    *others, last = (f"{major}.{minor}" for major, minor in SUPPORTED_VERSIONS)
    return f"vLLM {', '.join(others)} and {last}"


def _refuse(reason: str) -> None:
    _logger.warning("the structured outputs backend 'ffwd' is not available: %s", reason)
    # An unknown version may lack even this class.
    try:
        from ffwd.adapters.vllm.naming import extend_config

        extend_config(reason)
    except Exception as error:
        _logger.debug("and its name is unknown to vLLM: %r", error)
