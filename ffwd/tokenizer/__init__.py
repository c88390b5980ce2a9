"""Tokenizers: the bytes of every token id, encoding and decoding.

`load` reads a tokenizer in any format as a `Tokenizer`: ids, text, special tokens, chat templates
and the engine's vocabulary.

`Bpe` is the native tokenizer: texts to ids and back, and counting.

`from_huggingface` makes the engine's vocabulary directly. `token_table` returns the table that it
uses, `text_encoder` the encoder, and `vocabulary` combines the two. Neither `tokenizers` nor
`transformers` is imported before one of these is called.
"""

from typing import TYPE_CHECKING

from ffwd._lazy import lazy_names

if TYPE_CHECKING:
    from ffwd._native import AppendEncoder as AppendEncoder
    from ffwd._native import IntervalCounter as IntervalCounter
    from ffwd._native import PrependEncoder as PrependEncoder
    from ffwd.tokenizer.audit import Finding as Finding
    from ffwd.tokenizer.bpe import Bpe as Bpe
    from ffwd.tokenizer.definition import TokenizerParts as TokenizerParts
    from ffwd.tokenizer.description import TokenizerInfo as TokenizerInfo
    from ffwd.tokenizer.description import info as info
    from ffwd.tokenizer.encoder import TextEncoder as TextEncoder
    from ffwd.tokenizer.errors import CorruptTokenizerError as CorruptTokenizerError
    from ffwd.tokenizer.errors import TokenizerNotFoundError as TokenizerNotFoundError
    from ffwd.tokenizer.errors import UnsupportedTokenizerError as UnsupportedTokenizerError
    from ffwd.tokenizer.huggingface.vocabulary import from_huggingface as from_huggingface
    from ffwd.tokenizer.huggingface.vocabulary import text_encoder as text_encoder
    from ffwd.tokenizer.huggingface.vocabulary import token_table as token_table
    from ffwd.tokenizer.huggingface.vocabulary import vocabulary as vocabulary
    from ffwd.tokenizer.loading import load as load
    from ffwd.tokenizer.loading import load_async as load_async
    from ffwd.tokenizer.mocking import mock as mock
    from ffwd.tokenizer.roles import SpecialToken as SpecialToken
    from ffwd.tokenizer.roles import SpecialTokens as SpecialTokens
    from ffwd.tokenizer.table import TokenKind as TokenKind
    from ffwd.tokenizer.table import TokenTable as TokenTable
    from ffwd.tokenizer.tokenizer import Encoding as Encoding
    from ffwd.tokenizer.tokenizer import Tokenizer as Tokenizer
else:
    _NAMES = {
        "ffwd._native": "AppendEncoder IntervalCounter PrependEncoder",
        "ffwd.tokenizer.audit": "Finding",
        "ffwd.tokenizer.bpe": "Bpe",
        "ffwd.tokenizer.definition": "TokenizerParts",
        "ffwd.tokenizer.encoder": "TextEncoder",
        "ffwd.tokenizer.errors": (
            "CorruptTokenizerError TokenizerNotFoundError UnsupportedTokenizerError"
        ),
        "ffwd.tokenizer.huggingface.vocabulary": (
            "from_huggingface text_encoder token_table vocabulary"
        ),
        "ffwd.tokenizer.description": "TokenizerInfo info",
        "ffwd.tokenizer.loading": "load load_async",
        "ffwd.tokenizer.mocking": "mock",
        "ffwd.tokenizer.roles": "SpecialToken SpecialTokens",
        "ffwd.tokenizer.table": "TokenKind TokenTable",
        "ffwd.tokenizer.tokenizer": "Encoding Tokenizer",
    }
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
