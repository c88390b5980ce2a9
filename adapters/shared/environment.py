"""Settings of adapters in environment variables."""

import os

from ffwd import FfwdError


def is_on(variable: str) -> bool:
    """Return whether an environment variable is 1, as it is by default, and not 0.

    Raises:
        FfwdError: It is neither.

    """
    text = os.environ.get(variable, "1")
    if text not in ("0", "1"):
        raise FfwdError(f"{variable} must be 0 or 1, not {text!r}")
    return text == "1"
