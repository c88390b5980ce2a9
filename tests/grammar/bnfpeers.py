"""llama.cpp on whole texts of GBNF, and XGrammar on those of EBNF."""

import ctypes
from typing import Any

import pytest
import xgrammar
from llamacpp import models_folder

END = 256


def _byte_tokens() -> list[int]:
    """GPT-2's token of each byte: those that can be shown come first."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    order = shown + [byte for byte in range(256) if byte not in shown]
    return [order.index(byte) for byte in range(256)]


class Llama:
    """llama.cpp with the vocabulary of GPT-2, of which the tokens of bytes are used."""

    def __init__(self) -> None:
        llama: Any = pytest.importorskip(
            "llama_cpp.llama_cpp", reason="llama-cpp-python is not installed"
        )
        self.llama = llama
        self.silent = llama.llama_log_callback(lambda *_: None)
        llama.llama_log_set(self.silent, ctypes.c_void_p(0))
        llama.llama_backend_init()
        settings = llama.llama_model_default_params()
        settings.vocab_only = True
        path = str(models_folder() / "ggml-vocab-gpt-2.gguf").encode()
        self.model = llama.llama_model_load_from_file(path, settings)
        self.vocabulary = llama.llama_model_get_vocab(self.model)
        self.end = llama.llama_vocab_eos(self.vocabulary)
        self.tokens = _byte_tokens()

    def accepts(self, grammar: str, texts: list[str]) -> list[bool] | None:
        """Which texts belong to a grammar; `None` if it is refused."""
        sampler = self.llama.llama_sampler_init_grammar(self.vocabulary, grammar.encode(), b"root")
        if not sampler:
            return None
        try:
            return [self._accepts(sampler, text) for text in texts]
        finally:
            self.llama.llama_sampler_free(sampler)

    def _accepts(self, sampler: Any, text: str) -> bool:
        self.llama.llama_sampler_reset(sampler)
        for byte in text.encode():
            if not self._allows(sampler, self.tokens[byte]):
                return False
            self.llama.llama_sampler_accept(sampler, self.tokens[byte])
        return self._allows(sampler, self.end)

    def _allows(self, sampler: Any, token: int) -> bool:
        data = self.llama.llama_token_data(token, 0.0, 0.0)
        candidates = self.llama.llama_token_data_array(ctypes.pointer(data), 1, -1, False)
        self.llama.llama_sampler_apply(sampler, ctypes.byref(candidates))
        return bool(data.logit > float("-inf"))


class XGrammar:
    """XGrammar over a vocabulary of the 256 bytes."""

    def __init__(self) -> None:
        tokens = [bytes([byte]) for byte in range(END)] + [b"</s>"]
        information = xgrammar.TokenizerInfo(tokens, stop_token_ids=[END])
        self.compiler = xgrammar.GrammarCompiler(information, cache_enabled=False, max_threads=1)

    def accepts(self, grammar: str, texts: list[str]) -> list[bool] | None:
        """Which texts belong to a grammar; `None` if it is refused."""
        try:
            compiled = self.compiler.compile_grammar(xgrammar.Grammar.from_ebnf(grammar))
        except RuntimeError:
            return None
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=False)
        verdicts = []
        for text in texts:
            matcher.reset()
            verdicts.append(matcher.accept_string(text) and matcher.accept_token(END))
        return verdicts
