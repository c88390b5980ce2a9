"""A benchmark of constrained decoding on real JSON schemas.

Every engine gets the same schemas and the same tokens, computes one mask and accepts one token
per step, and is judged before it is timed. `python -m maskbench run --help` lists the options.
"""

import importlib
import sys
from pathlib import Path


def _import_ffwd() -> None:
    """Import ffwd: the checkout's own, or where that is not compiled, the installed one.

    `python -m maskbench` puts the checkout first on the path, before the packages that are
    installed, and its sources lack the native module until they are built in place.
    """
    checkout = Path(__file__).resolve().parent.parent
    if "ffwd" in sys.modules or any(checkout.glob("ffwd/_native.*[!i]")):
        return
    path = sys.path[:]
    sys.path[:] = [place for place in path if Path(place).resolve() != checkout]
    try:
        importlib.import_module("ffwd")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"ffwd is not installed, and its sources in {checkout} are not compiled: run"
            " `pip install ffwd`, or `make setup` there",
            name=error.name,
        ) from error
    finally:
        sys.path[:] = path


_import_ffwd()
