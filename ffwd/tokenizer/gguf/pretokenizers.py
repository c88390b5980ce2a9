"""The meaning of pre-tokenizer names in GGUF files.

A GGUF file does not contain the rule that splits a text into pieces before merges. It has a name
for it (`tokenizer.ggml.pre`), which a reader must know. The names are those of llama.cpp's
`llama-vocab.cpp`, and the patterns those of the original tokenizers.

llama.cpp writes some of them differently, because its regular expressions support neither upper and
lower case beyond ASCII nor flags; docs/tokenizer.md lists the effects. The model was trained with
the original, so this module produces the original's ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ffwd.tokenizer.errors import UnsupportedTokenizerError

Stage = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PreTokenizer:
    """How a text is prepared for the merges.

    `stages`: the steps that cut it, as a tokenizer.json writes them. `whole_pieces`: a piece that
    is a token is that token, whatever merges would make of it. `compose`: the text is composed
    (NFC) first. `byte_level`: tokens are written in GPT-2's alphabet; otherwise as they are, with
    `▁` for a space and `<0x0A>` for bytes. `add_bos`: what a file means that does not say whether
    a text begins with the beginning-of-text token.
    """

    stages: Sequence[Stage]
    whole_pieces: bool = False
    compose: bool = False
    byte_level: bool = True
    add_bos: bool = False


def _split(*patterns: str) -> tuple[Stage, ...]:
    """Return a stage whose pieces are each pattern's matches, and the parts between them."""
    return tuple(
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        for p in patterns
    )


_GPT2: tuple[Stage, ...] = ({"type": "ByteLevel"},)
_DIGITS = _split(r"\p{N}")
_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_LETTERS = r"[^\r\n\p{L}\p{N}]?\p{L}+"


def _cl100k(digits: str) -> tuple[Stage, ...]:
    """Return the pattern of cl100k as Llama 3 and Qwen write it."""
    return _split("|".join((_CONTRACTION, _LETTERS, digits, _SYMBOLS, _SPACES)))


def _cased(upper: str, lower: str, contraction: str) -> str:
    """Return a pattern for words whose capitals come first."""
    return (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{upper}]*[{lower}]+{contraction}"
        rf"|[^\r\n\p{{L}}\p{{N}}]?[{upper}]+[{lower}]*{contraction}"
    )


_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_O200K = "|".join(
    (
        _cased(_UPPER, _LOWER, rf"{_CONTRACTION}?"),
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        _SPACES,
    )
)
_TEKKEN = "|".join((_cased(_UPPER, _LOWER, ""), r"\p{N}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", _SPACES))
_KIMI_K2 = "|".join(
    (
        r"[\p{Han}]+",
        _cased(rf"{_UPPER}&&[^\p{{Han}}]", rf"{_LOWER}&&[^\p{{Han}}]", rf"{_CONTRACTION}?"),
        r"\p{N}{1,3}",
        _SYMBOLS,
        _SPACES,
    )
)

_PUNCTUATION_AND_LETTERS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
)
_CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_DEEPSEEK_3 = _split(
    r"\p{N}{1,3}",
    _CJK,
    _PUNCTUATION_AND_LETTERS + r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_HAN_AND_HANGUL = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_THREES_FROM_THE_RIGHT = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
"""Digits in groups of three, of which the first may be shorter."""

_CASED_LETTERS = (
    "A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1"
    "\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5"
    "\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3"
    "\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149"
    "\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943"
)
"""Letters with case, as DeepSeek LLM's tokenizer.json lists them."""

_BLOOM = _split(" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+")
_FALCON = (*_split(r"[\p{P}\$\+<=>\^~\|`]+"), *_GPT2, *_split("[0-9][0-9][0-9]"))
_LINES = _split(r"[^\n]+|[\n]+")

_PRE_TOKENIZERS: dict[tuple[str, ...], PreTokenizer] = {
    # llama.cpp's default for a file without a name.
    ("default",): PreTokenizer(
        stages=(
            *_split(r"[\p{P}\$\+<=>\^~\|]+"),
            *_GPT2,
            *_split(r"\p{N}+", "[0-9][0-9][0-9]"),
        )
    ),
    (
        "gpt-2",
        "phi-2",
        "jina-es",
        "jina-de",
        "gigachat",
        "jina-v2-es",
        "jina-v2-de",
        "a.x-4.0",
        "mellum",
        "modern-bert",
        "jina-v1-en",
        "jina-v2-code",
        "roberta-bpe",
        "exaone4",
        "jais",
        "trillion",
        "granite-docling",
    ): PreTokenizer(stages=_GPT2),
    ("mpt", "olmo"): PreTokenizer(stages=_GPT2, compose=True),
    ("starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"): PreTokenizer(
        stages=(*_DIGITS, *_GPT2)
    ),
    ("command-r",): PreTokenizer(stages=(*_DIGITS, *_GPT2), compose=True),
    ("falcon",): PreTokenizer(stages=_FALCON),
    (
        "llama3",
        "llama-v3",
        "llama-bpe",
        "falcon3",
        "falcon-h1",
        "pixtral",
        "midm-2.0",
        "lfm2",
        "jina-v5-nano",
    ): PreTokenizer(stages=_cl100k(r"\p{N}{1,3}"), whole_pieces=True, add_bos=True),
    ("dbrx", "smaug-bpe", "chatglm-bpe"): PreTokenizer(stages=_cl100k(r"\p{N}{1,3}")),
    ("glm4", "glm5"): PreTokenizer(stages=_cl100k(r"\p{N}{1,3}"), whole_pieces=True),
    ("minicpm5",): PreTokenizer(
        stages=(*_split(r"\p{N}{1,3}"), *_cl100k(r"\p{N}+")), whole_pieces=True
    ),
    ("qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2"): PreTokenizer(
        stages=_cl100k(r"\p{N}"), compose=True
    ),
    ("stablelm2", "hunyuan", "megrez", "solar-open", "grok-2"): PreTokenizer(
        stages=_cl100k(r"\p{N}")
    ),
    ("laguna",): PreTokenizer(stages=(*_LINES, *_cl100k(r"\p{N}"))),
    # Not composed, unlike Qwen 2's: its expected ids have combining marks of their own.
    ("qwen35",): PreTokenizer(
        stages=_split(
            "|".join(
                (
                    _CONTRACTION,
                    r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
                    r"\p{N}",
                    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
                    _SPACES,
                )
            )
        ),
    ),
    ("ufakzeka",): PreTokenizer(stages=_split("|".join((_LETTERS, r"\p{N}", _SYMBOLS, _SPACES)))),
    ("seed-coder",): PreTokenizer(
        stages=_split(
            "|".join((_CONTRACTION, _LETTERS, r"\p{N}", r" ?[^\s\p{L}\p{N}\r\n]+", _SPACES))
        )
    ),
    ("bailingmoe", "bailingmoe2", "llada-moe"): PreTokenizer(
        stages=_split(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
            r"|\s*[\r\n]|\s+(?!\S)|\s+"
        )
    ),
    ("exaone-moe",): PreTokenizer(
        stages=_split(
            "|".join(
                (
                    _CONTRACTION,
                    r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+",
                    r"\p{N}",
                    r" ?[^\s\p{L}\p{N}]+[\r\n/]?",
                    r"\s*[\r\n]|\s+(?!\S)|\s+",
                )
            )
        )
    ),
    ("jais-2",): PreTokenizer(
        stages=_split(
            "|".join(
                (
                    _CONTRACTION,
                    _LETTERS,
                    r"\p{N}{1,3}",
                    _SYMBOLS,
                    r"\s*[\r\n]+",
                    *(rf"\s{{{2**n}}}(?!\S)" for n in range(9, 1, -1)),
                    r"\s{1,2}(?!\S)|\s{1}",
                )
            )
        )
    ),
    ("gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"): PreTokenizer(stages=_split(_O200K)),
    ("granite-embed-multi-97m",): PreTokenizer(stages=_split(_O200K), whole_pieces=True),
    ("tiny_aya", "cohere2moe"): PreTokenizer(stages=_split(r"\d{1,3}(?=(?:\d{3})*\b)", _O200K)),
    ("tekken",): PreTokenizer(stages=_split(_TEKKEN), whole_pieces=True, add_bos=True),
    ("kimi-k2",): PreTokenizer(stages=_split(_KIMI_K2)),
    ("deepseek-llm",): PreTokenizer(
        stages=_split(
            r"[\r\n]",
            rf"\s?[{_CASED_LETTERS}]+",
            "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
            r"\s+$",
            _HAN_AND_HANGUL,
            r"\p{N}+",
        )
    ),
    ("deepseek-coder",): PreTokenizer(
        stages=_split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN_AND_HANGUL, r"\p{N}")
    ),
    ("deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm"): PreTokenizer(stages=_DEEPSEEK_3),
    ("spark2_5",): PreTokenizer(
        stages=_split(
            r"\p{N}{1,3}",
            _CJK,
            _PUNCTUATION_AND_LETTERS + r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+",
            r"\p{N}",
        )
    ),
    ("youtu",): PreTokenizer(
        stages=_split(
            "[\uac00-\ud7a3\u3131-\u318e]+"
            "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
            "\u3001-\u303f\ufe30-\ufe4f]+"
            "|[\u3105-\u312f]+|" + _CJK,
            "|".join(
                (
                    _cased(_UPPER, _LOWER, rf"{_CONTRACTION}?"),
                    r"\p{N}",
                    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                    _SPACES,
                )
            ),
        ),
        whole_pieces=True,
    ),
    ("afmoe",): PreTokenizer(
        stages=_split(
            _THREES_FROM_THE_RIGHT,
            "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
            "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
            "\u1100-\u11ff]+",
            _PUNCTUATION_AND_LETTERS + r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )
    ),
    ("superbpe",): PreTokenizer(stages=_split(r"\p{N}+", r"(?=(\d{3})+(?!\d))")),
    ("bloom", "poro-chat", "gpt3-finnish"): PreTokenizer(stages=_BLOOM),
    ("viking",): PreTokenizer(stages=(*_BLOOM, *_DIGITS)),
    ("chameleon",): PreTokenizer(
        stages=(
            *_split(
                "<sentinel:[0-9]+>",
                "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                r"([\t\n]|    |  )",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
            ),
            *_GPT2,
        ),
        add_bos=True,
    ),
    ("gemma4", "granite-embed-multi-311m"): PreTokenizer(stages=(), byte_level=False, add_bos=True),
    ("sarvam-moe",): PreTokenizer(stages=(), byte_level=False),
}

_BY_NAME = {name: found for names, found in _PRE_TOKENIZERS.items() for name in names}

NAMES = tuple(sorted(_BY_NAME))
"""The names that are known."""


def pre_tokenizer(name: str) -> PreTokenizer:
    """Return the meaning of a name.

    Raises `UnsupportedTokenizerError` for a name that is not known: with another pattern most of
    the ids would be right and some would not.
    """
    found = _BY_NAME.get(name)
    if found is None:
        raise UnsupportedTokenizerError(
            f"the pre-tokenizer {name!r} (tokenizer.ggml.pre) is not known; pass pre= with the one "
            f"of these that is the same: {', '.join(NAMES)}"
        )
    return found
