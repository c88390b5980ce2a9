"""llama.cpp grammars (`pip install llama-cpp-python gguf`): a schema becomes GBNF.

The schema goes through the package's own `json_schema_to_gbnf`, the grammar into llama.cpp's own
sampler, over a model file without weights that is written from the run's tokenizer.

llama.cpp aborts the process where a grammar has no way left, which the run records as a crash.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from maskbench.documents import Whitespace
from maskbench.engines import base
from maskbench.packaged import byte_characters
from maskbench.tokenizer import TokenizerSpec

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""`llama_token_data`."""

_ERROR = 3  # GGML_LOG_LEVEL_ERROR
# Where a model file names end tokens; a run that has more of them cannot be given to llama.cpp.
_END_KEYS = ("add_eos_token_id", "add_eot_token_id", "add_eom_token_id")


class LlamaCppEngine(base.Engine):
    """The grammar sampler over all tokens: those that it leaves a finite logit are allowed.

    Special tokens keep their names as texts, as in any model file, so llama.cpp lets them into
    strings like text.
    """

    name = "llama-cpp"

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("llama.cpp", "llama-cpp-python gguf (takes a while to compile)"):
            import gguf
            import llama_cpp
            import llama_cpp.llama_grammar
        self._llama: Any = llama_cpp
        self._to_gbnf: Any = llama_cpp.llama_grammar.json_schema_to_gbnf
        self.errors: list[str] = []

        @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
        def log(level: int, text: bytes, _: Any) -> None:
            if level == _ERROR:
                self.errors.append(text.decode(errors="replace").strip())

        self._log = log  # llama.cpp holds no reference
        llama_cpp.llama_log_set(log, ctypes.c_void_p(0))
        spec = setup.tokenizer
        if len(spec.eos_token_ids) > len(_END_KEYS):
            raise base.MissingEngineError(
                f"llama.cpp cannot be used: it takes {len(_END_KEYS)} end tokens, and the "
                f"tokenizer has {len(spec.eos_token_ids)}"
            )
        texts = base.token_texts(spec)
        # Tokens of equal text: the model file has each text once, and the others go with the first.
        first_of: dict[bytes, int] = {}
        self.first = np.arange(spec.vocab_size)
        for token, text in enumerate(texts):
            if text:
                self.first[token] = first_of.setdefault(text, token)
        with tempfile.TemporaryDirectory(prefix="maskbench-") as directory:
            file = Path(directory, "vocabulary.gguf")
            _write_vocabulary(gguf, file, spec, texts, self.first)
            parameters = llama_cpp.llama_model_default_params()
            parameters.vocab_only = True
            llama_cpp.llama_backend_init()
            self._model = llama_cpp.llama_model_load_from_file(str(file).encode(), parameters)
        if self._model is None:
            raise base.MissingEngineError(f"llama.cpp cannot be used: {' '.join(self.errors)}")
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.candidates = np.zeros(spec.vocab_size, dtype=_CANDIDATE)
        self.candidates["id"] = np.arange(spec.vocab_size)
        # It knows some end tokens by their names, also those that the run does not end with.
        self.other_ends = np.array(
            [
                token
                for token in range(spec.vocab_size)
                if token not in spec.eos_token_ids
                and llama_cpp.llama_vocab_is_eog(self._vocab, token)
            ],
            dtype=np.int64,
        )
        self._unsupported = base.unsupported_mode(
            setup,
            "llama-cpp-python",
            whitespace=(Whitespace.FLEXIBLE,),
            property_orders=("declared",),
        )
        self.bitmask = np.zeros(base.mask_words(spec.vocab_size), dtype=np.int32)

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        import llama_cpp.llama_grammar

        return {
            "llama-cpp-python": importlib.metadata.version("llama-cpp-python"),
            "options": (
                f"json_schema_to_gbnf with space ::= {llama_cpp.llama_grammar.SPACE_RULE}, "
                "required properties before the others"
            ),
        }

    def compile(self, schema: str) -> base.Compiled:
        """Convert a schema and parse the grammar; raises `RefusedError`."""
        self._refuse_unsupported()
        try:
            gbnf = self._to_gbnf(schema)
        except (AssertionError, ValueError, NotImplementedError) as error:
            message = f"{type(error).__name__}: {error}"
            raise base.refusal(message) from error
        return _Compiled(self, gbnf.encode(errors="surrogatepass"))

    def sampler(self, gbnf: bytes) -> Any:
        """Return a sampler at the start of the grammar; raises `RefusedError`."""
        sampler = self._llama.llama_sampler_init_grammar(self._vocab, gbnf, b"root")
        if not sampler:
            message = self._complaint(gbnf)
            raise base.refusal(message)
        return sampler

    def _complaint(self, gbnf: bytes) -> str:
        """Return the grammar parser's messages, which it writes to the process's standard error."""
        with tempfile.TemporaryFile() as file:
            kept = os.dup(2)
            os.dup2(file.fileno(), 2)
            try:
                self._llama.llama_sampler_init_grammar(self._vocab, gbnf, b"root")
            finally:
                os.dup2(kept, 2)
                os.close(kept)
            file.seek(0)
            said = file.read(1000).decode(errors="replace").strip()
        return said or "the grammar was not taken"

    def session(self, sampler: Any) -> base.Session:
        """Return a walk from the state of the sampler, which it owns from then on."""
        walk = _Walk(self, self._llama, sampler)
        return base.Session(
            fill=walk.fill, accept=walk.accept, problem=lambda: None, fork=lambda: walk.fork(self)
        )


class _Compiled(base.Compiled):
    def __init__(self, engine: LlamaCppEngine, gbnf: bytes) -> None:
        self._engine = engine
        self._gbnf = gbnf

    def session(self) -> base.Session:
        # As a server does for each request; a clone takes time quadratic in the grammar.
        return self._engine.session(self._engine.sampler(self._gbnf))


class _Walk:
    def __init__(self, engine: LlamaCppEngine, llama: Any, sampler: Any) -> None:
        self._llama = llama
        self._sampler = sampler
        self._candidates = engine.candidates
        self._first = engine.first
        self._other_ends = engine.other_ends
        self._repeated = bool((engine.first != np.arange(len(engine.first))).any())
        self._bytes = engine.bitmask.view(np.uint8)
        self._allowed: NDArray[np.bool_] | None = None
        self._array = llama.llama_token_data_array(
            data=ctypes.cast(self._candidates.ctypes.data, llama.llama_token_data_p),
            size=len(self._candidates),
            selected=-1,
            sorted=False,
        )

    def __del__(self) -> None:
        self._llama.llama_sampler_free(self._sampler)

    def fill(self) -> None:
        logits = self._candidates["logit"]
        logits[:] = 0
        self._llama.llama_sampler_apply(self._sampler, ctypes.byref(self._array))
        allowed: NDArray[np.bool_] = logits == 0
        allowed[self._other_ends] = False
        if self._repeated:
            allowed = allowed[self._first]
        self._allowed = allowed
        packed = np.packbits(allowed, bitorder="little")
        self._bytes[: len(packed)] = packed

    def accept(self, token: int) -> bool:
        if self._allowed is None:
            self.fill()
        # It aborts the process for one that it does not allow.
        if self._allowed is None or not self._allowed[token]:
            return False
        self._llama.llama_sampler_accept(self._sampler, int(self._first[token]))
        self._allowed = None
        return True

    def fork(self, engine: LlamaCppEngine) -> base.Session:
        return engine.session(self._llama.llama_sampler_clone(self._sampler))


def _write_vocabulary(
    gguf: Any,
    file: Path,
    spec: TokenizerSpec,
    texts: list[bytes | None],
    first: NDArray[np.int64],
) -> None:
    """Write a model file with a vocabulary and no weights.

    Every tokenizer is written as a byte-level one, which can encode any bytes.
    """
    alphabet = byte_characters()
    named = tokenizers.Tokenizer.from_file(str(spec.directory / "tokenizer.json"))
    names = {token: text for text, token in named.get_vocab(with_added_tokens=True).items()}
    written: list[str] = []
    kinds: list[int] = []
    seen = {"".join(alphabet[byte] for byte in text) for text in texts if text}
    for token, text in enumerate(texts):
        if text and first[token] == token:
            written.append("".join(alphabet[byte] for byte in text))
            kinds.append(gguf.TokenType.NORMAL)
            continue
        special = not text and token in names and names[token] not in seen
        written.append(names[token] if special else f"[unused {token}]")
        special = special or token in spec.eos_token_ids
        kinds.append(gguf.TokenType.CONTROL if special else gguf.TokenType.UNUSED)
        seen.add(written[-1])
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(written)
    writer.add_token_types(kinds)
    # Nothing is ever encoded with it, and it is not loaded without any.
    writer.add_token_merges(["Ġ Ġ"])
    for key, token in zip(_END_KEYS, spec.eos_token_ids, strict=False):
        getattr(writer, key)(token)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
