"""`Bpe`: a tokenizer's encoding, decoding and counting, natively and in linear time.

Readers of formats are imported by the method that needs one.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ffwd import _native

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor
    from tiktoken import Encoding


class Bpe(_native.Bpe):
    """A BPE tokenizer: `Bpe.from_huggingface("path/of/a/model").encode("some text")`.

    Its token ids are those of the tokenizer that it was read from, except for the differences in
    docs/tokenizer.md. Immutable; threads may share it.
    """

    __slots__ = ()

    @classmethod
    def from_huggingface(cls, source: Any) -> "Bpe":
        """Read a Hugging Face fast tokenizer.

        `source`: a fast tokenizer of transformers, a `tokenizers.Tokenizer`, a directory with a
        tokenizer.json in it, or the path of a tokenizer.json.

        Raises `VocabularyError` for a model that is not BPE, for a normalizer other than NFC that
        changes text, and for a pre-tokenizer that drops text or is unknown.
        """
        from ffwd.tokenizer.huggingface.bpe import huggingface_parts
        from ffwd.tokenizer.source import read_source
        from ffwd.tokenizer.tokens import read_tokens

        read = read_source(source)
        return cls(**huggingface_parts(read, read_tokens(read)))

    @classmethod
    def from_tiktoken(cls, encoding: "Encoding") -> "Bpe":
        """Read an encoding of tiktoken.

        Raises `VocabularyError` for another object, and for a pattern that is not supported.
        """
        from ffwd.tokenizer.ranks.read import rank_parts, tiktoken_ranks

        return cls(**rank_parts(tiktoken_ranks(encoding)))

    @classmethod
    def from_ranks(
        cls,
        ranks: "Mapping[bytes, int] | str | os.PathLike[str]",
        pattern: str,
        special_tokens: Mapping[str, int] | None = None,
    ) -> "Bpe":
        """Make a byte-level BPE from ranks, which are the token ids.

        `ranks`: texts and their ranks, or the path of a file with a text in base64 and its rank on
        each line (Llama 3's tokenizer.model, Qwen's qwen.tiktoken). `pattern`: the regular
        expression that cuts a text into pieces. `special_tokens`: names and their ids.

        Raises `VocabularyError` for ids that contradict each other, for a file that cannot be
        read, and for a pattern that is not supported.
        """
        from ffwd.tokenizer.ranks.read import Ranks, rank_parts, read_ranks

        given = ranks if isinstance(ranks, Mapping) else read_ranks(ranks)
        stated = Ranks(ranks=given, pattern=pattern, special_tokens=special_tokens or {})
        return cls(**rank_parts(stated))

    @classmethod
    def from_sentencepiece(
        cls, source: "str | os.PathLike[str] | bytes | SentencePieceProcessor"
    ) -> "Bpe":
        """Read a SentencePiece BPE model: the path of its file, its bytes, or a processor.

        Raises `VocabularyError` for a model that is not BPE, that normalizes text, or that cannot
        be read.
        """
        from ffwd.tokenizer.sentencepiece.model import read_sentencepiece, sentencepiece_parts

        return cls(**sentencepiece_parts(read_sentencepiece(source)))

    @classmethod
    def from_tekken(cls, path: str | os.PathLike[str]) -> "Bpe":
        """Read a tekken.json of Mistral.

        Raises `VocabularyError` for a file that cannot be read. One that does not list its special
        tokens needs the package mistral-common, which has them.
        """
        from ffwd.tokenizer.ranks.read import rank_parts, read_tekken

        return cls(**rank_parts(read_tekken(path)))
