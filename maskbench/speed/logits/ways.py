"""Ways to put a mask onto logits: ffwd's, plain torch, and the peers'."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import ffwd
import ffwd.adapters.logits
from maskbench.speed.logits.masks import Bitmasks

_WORD_BITS = 32


@dataclass(frozen=True)
class Way:
    """One way, prepared for a problem.

    `call` masks the logits that it was made with, or returns a masked copy. The reference's
    result must stay valid; `same` says whether the result must equal that of `torch.where`.
    """

    name: str
    call: Callable[[], Any]
    same: bool = True


def ways(
    logits: torch.Tensor, masks: Bitmasks, *, threads: int, compiled: bool
) -> tuple[list[Way], dict[str, str]]:
    """Return all ways for one problem, ffwd's first; and which are missing, with the reason.

    Args:
        logits: [rows, width] on any device; the ways that work in place write to it.
        masks: [rows, words].
        threads: How many threads ffwd may use; the caller has told torch.
        compiled: Also those that are compiled for the problem first, which takes half a minute.

    """
    on_processor = logits.device.type == "cpu"
    width = logits.shape[1]
    bits = torch.from_numpy(masks).to(logits.device)
    shifts = torch.arange(_WORD_BITS, dtype=torch.int32, device=logits.device)

    def unpack() -> torch.Tensor:
        return (((bits.unsqueeze(-1) >> shifts) & 1) != 0).flatten(1)[:, :width]

    ready = unpack()
    found: list[Way] = []
    missing: dict[str, str] = {}
    if on_processor:
        octets = masks.view(np.uint8)

        def unpack_by_numpy() -> torch.Tensor:
            unpacked = np.unpackbits(octets, axis=1, count=width, bitorder="little")
            return torch.from_numpy(unpacked.view(np.bool_))

        found.append(
            Way(
                "ffwd",
                lambda: ffwd.apply_token_bitmask_inplace(logits, masks, threads=threads),
            )
        )
        found.append(
            Way(
                "unpackbits + where",
                lambda: torch.where(unpack_by_numpy(), logits, -torch.inf),
            )
        )
    else:
        apply = ffwd.adapters.logits.apply_token_bitmask_inplace
        found.append(Way("ffwd", lambda: apply(logits, bits)))
        found.append(Way("ffwd, torch", lambda: apply(logits, bits, backend="torch")))
    found += [
        Way("where", lambda: torch.where(ready, logits, -torch.inf)),
        Way("shifts + where", lambda: torch.where(unpack(), logits, -torch.inf)),
    ]
    for name, make in (("xgrammar", _xgrammar), ("llguidance", _llguidance)):
        if name == "llguidance" and not compiled:
            missing[name] = "compiled first: --compiled"
        elif importlib.util.find_spec(name) is None:
            missing[name] = f"pip install {name}"
        else:
            found.append(Way(name, make(logits, bits)))
    if logits.is_cuda and "xgrammar" not in missing:
        import xgrammar

        way = Way(
            "xgrammar, cuda",
            lambda: xgrammar.apply_token_bitmask_inplace(logits, bits, backend="cuda"),
        )
        # It is compiled for the first call, by a compiler that may be missing.
        try:
            way.call()
            found.append(way)
        except (ImportError, OSError, RuntimeError) as error:
            missing[way.name] = str(error).partition("\n")[0]
    # The least that a mask without allowed tokens can cost.
    found.append(Way("fill", lambda: logits.fill_(-torch.inf), same=False))
    return found, missing


def _xgrammar(logits: torch.Tensor, bits: torch.Tensor) -> Callable[[], Any]:
    import xgrammar

    return lambda: xgrammar.apply_token_bitmask_inplace(logits, bits)


def _llguidance(logits: torch.Tensor, bits: torch.Tensor) -> Callable[[], Any]:
    import llguidance.torch

    return lambda: llguidance.torch.apply_token_bitmask_inplace(logits, bits)
