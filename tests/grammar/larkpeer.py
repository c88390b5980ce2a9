"""llguidance on Lark grammars, beside ours."""

from typing import Any

import pytest
from compiled import END


def _encode(_: Any, text: str) -> list[int]:
    return list(text.encode())


class Peer:
    """llguidance on a vocabulary of the 256 bytes."""

    def __init__(self) -> None:
        llguidance: Any = pytest.importorskip("llguidance", reason="llguidance is not installed")
        bytes_alone: Any = type("Bytes", (), {})()
        bytes_alone.eos_token_id, bytes_alone.bos_token_id = END, None
        bytes_alone.special_token_ids = [END]
        bytes_alone.tokens = [bytes([byte]) for byte in range(END)] + [b"<end>"]
        type(bytes_alone).__call__ = _encode
        wrapper = llguidance.TokenizerWrapper(bytes_alone)
        self.module, self.tokenizer = llguidance, llguidance.LLTokenizer(wrapper)

    def matcher(self, grammar: str) -> Any:
        source = self.module.grammar_from("lark", grammar)
        return self.module.LLMatcher(self.tokenizer, source, log_level=0)

    @staticmethod
    def accepts(matcher: Any, text: str) -> bool:
        matcher = matcher.deep_copy()
        for byte in text.encode():
            # It stops where only what is ignored could follow.
            if matcher.is_stopped() or not matcher.try_consume_tokens([byte]):
                return False
        assert not matcher.is_error(), matcher.get_error()
        return bool(matcher.is_accepting())
