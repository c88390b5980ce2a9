"""LM-format-enforcer (`pip install lm-format-enforcer`): parsers of characters, in Python.

It receives each token as text. As in its integrations, a token that holds parts of characters is
"\ufffd" there, so its masks allow such tokens in strings whatever their bytes are.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskbench.documents import Whitespace
from maskbench.engines import base


class LmFormatEnforcerEngine(base.Engine):
    """Its defaults, with masks from its own bitmasks. It has no other order than any.

    Tokens of whole characters are marked as beginnings of words, so that it takes each by itself
    and decodes no text from the start again.
    """

    name = "lm-format-enforcer"

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("LM-format-enforcer", "lm-format-enforcer torch"):
            import lmformatenforcer
            import lmformatenforcer.characterlevelparser
            import lmformatenforcer.exceptions
            import torch  # noqa: F401 - its bitmasks are tensors
        self._lmfe: Any = lmformatenforcer
        self._refusals = (
            ValueError,
            NotImplementedError,
            lmformatenforcer.exceptions.LMFormatEnforcerException,
        )
        self._forced_stop: Any = lmformatenforcer.characterlevelparser.ForceStopParser
        spec = setup.tokenizer
        texts = base.token_texts(spec)
        ends = set(spec.eos_token_ids)
        regular = [
            (token, text.decode(errors="replace"), _is_whole(text))
            for token, text in enumerate(texts)
            if text and token not in ends
        ]

        def decode(tokens: list[int]) -> str:
            joined = b"".join(texts[token] or b"" for token in tokens)
            return joined.decode(errors="replace").rstrip("\ufffd")

        self._tokenizer = lmformatenforcer.TokenEnforcerTokenizerData(
            regular, decode, list(spec.eos_token_ids), True, spec.vocab_size
        )
        # The limit on whitespace holds inside of strings too, so none at all cannot be asked for.
        self._unsupported = base.unsupported_mode(
            setup, "LM-format-enforcer", whitespace=(Whitespace.FLEXIBLE,)
        )
        self._log = _Log()
        logging.getLogger().addHandler(self._log)
        self.bitmask = np.zeros(base.mask_words(spec.vocab_size), dtype=np.int32)

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        config = self._lmfe.CharacterLevelParserConfig()
        return {
            "lm-format-enforcer": importlib.metadata.version("lm-format-enforcer"),
            "options": (
                "property_order=any (it has no other), use_bitmask=True, "
                f"max_consecutive_whitespaces={config.max_consecutive_whitespaces}, "
                f"max_json_array_length={config.max_json_array_length}"
            ),
        }

    def compile(self, schema: str) -> base.Compiled:
        """Make the parser of a schema; raises `RefusedError`."""
        self._refuse_unsupported()
        parsed = json.loads(schema)
        if not isinstance(parsed, dict) or not parsed:
            # It reads an empty schema as a missing one, which also means any JSON.
            if parsed not in (True, {}):
                raise base.RefusedError("a schema that is no object", f"not an object: {schema}")
            parsed = None
        try:
            parser = self._lmfe.JsonSchemaParser(parsed)
        except Exception as error:
            # It raises the bare class for what it does not know; others are errors of its own.
            if type(error) is not Exception and not isinstance(error, self._refusals):
                raise
            message = f"{type(error).__name__}: {error}"
            raise base.refusal(message) from error
        return _Compiled(self, parser)

    def session(self, parser: Any) -> base.Session:
        """Return an independent walk from the start."""
        walk = _Walk(self._lmfe.TokenEnforcer(self._tokenizer, parser), self.bitmask)
        log = self._log
        forced_stop = self._forced_stop
        log.message = None

        def problem() -> str | None:
            if log.message is not None:
                return log.message
            # Its state after an allowed character that has no continuation.
            if isinstance(walk.parser(), forced_stop):
                return "the parser gave up on a token that its mask allows"
            return None

        return base.Session(fill=walk.fill, accept=walk.accept, problem=problem)


class _Compiled(base.Compiled):
    def __init__(self, engine: LmFormatEnforcerEngine, parser: Any) -> None:
        self._engine = engine
        self._parser = parser

    def session(self) -> base.Session:
        return self._engine.session(self._parser)


class _Walk:
    """It is asked with all tokens so far, and remembers the state of each prefix itself."""

    def __init__(self, enforcer: Any, bitmask: NDArray[np.int32]) -> None:
        self._enforcer = enforcer
        self._bitmask = bitmask
        self._tokens: list[int] = []

    def fill(self) -> None:
        self._bitmask[:] = self._allowed().allowed_tokens.numpy()

    def accept(self, token: int) -> bool:
        if not self._allowed().is_token_allowed(token):
            return False
        self._tokens.append(token)
        return True

    def parser(self) -> Any:
        """Return the parser's state after the tokens so far."""
        self._allowed()
        return self._enforcer.prefix_states[tuple(self._tokens)].parser

    def _allowed(self) -> Any:
        return self._enforcer.get_allowed_tokens(self._tokens)


class _Log(logging.Handler):
    """Catches errors that it only logs, before it returns a mask of the end token alone."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.message: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.message is None:
            cause = record.exc_info[1] if record.exc_info else None
            self.message = f"{type(cause).__name__}: {cause}" if cause else record.getMessage()


def _is_whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
