"""Texts to encode: natural languages, code, JSON, emoji, and random ones."""

import random
from pathlib import Path

TEXTS = {
    "empty": "",
    "prose": "The quick brown fox can't jump over 12345 lazy dogs; they're asleep.\n\nSo it waits…",
    "json": '{"name": "Ada", "tags": ["a", "b\\n"], "n": -1.5e10, "ok": true, "$schema": null}',
    "pretty": '{\n  "orderId": 17,\n\t"items": [\n    {"id": "x"}\n  ]\n}\n',
    "code": "def f(x):\n\tif x >= 0x1F:\n        return [i**2 for i in range(x)]  # ok\r\n",
    "spaces": "a  b   c\t\td \n e\n\n\n   f    ",
    "german": "Straßenbahnübergänge führen über die Brücke.",
    "chinese": "今天天气很好。我们去公园玩吧。",
    "japanese": "東京タワーに登りました。カタカナ",
    "arabic": "مرحبا بالعالم، كيف حالك؟",
    "hindi": "नमस्ते दुनिया",
    "thai": "สวัสดีชาวโลก",
    "korean": "안녕하세요 세계",
    "vietnamese": "Tiếng Việt: một việc nhỏ",
    "rare": "龘靐齉 𓀀𓁐 ᚠᚢᚦ \u2581 \ufffd \u0000 \u0007",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 👍🏽 🤷‍♀️",
    "combining": "e\u0301 a\u0308 \u1100\u1161 \u0345\u017f",
    "byte names": "<0x0A> <0xFF> Ġthe Ċ",
    "special names": "<|eot_id|></s>[INST]<s> <|im_end|><unk><tool_call><think>[/INST]",
}


def random_texts(seed: int, count: int, length: int = 24) -> list[str]:
    """Texts of characters from every plane, with the ASCII ones in front."""
    rng = random.Random(seed)
    pools = [
        list(map(chr, range(0x20, 0x7F))),
        list("\t\n\r  \u00a0\u2028\u3000"),
        list(map(chr, range(0xA0, 0x800))),
        [chr(c) for c in range(0x800, 0x10000, 37) if not 0xD800 <= c < 0xE000],
        list(map(chr, range(0x10000, 0x110000, 4001))),
    ]
    weights = [60, 15, 10, 10, 5]
    return [
        "".join(
            rng.choice(pool) for pool in rng.choices(pools, weights, k=rng.randrange(1, length))
        )
        for _ in range(count)
    ]


def long_texts() -> dict[str, str]:
    """Some ten thousand characters each of prose, code, JSON and many languages mixed."""
    import pydoc_data.topics
    import textwrap

    repository = Path(__file__).resolve().parent.parent.parent
    rng = random.Random(4)
    languages = [TEXTS[name] for name in _LANGUAGES]
    words = [word for text in languages for word in text.split()]
    corpus = (repository / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8")
    return {
        "prose": "\n\n".join(pydoc_data.topics.topics.values())[:60_000],
        "python": Path(textwrap.__file__).read_text(encoding="utf-8"),
        "rust": (repository / "ffwd/native/crates/tokenizer/src/vocabulary/trie.rs").read_text(
            encoding="utf-8"
        ),
        "markdown": (repository / "README.md").read_text(encoding="utf-8"),
        "json": corpus[:40_000],
        "languages": " ".join(rng.choice(words + languages) for _ in range(3_000)),
        "characters": "".join(rng.choice("".join(languages)) for _ in range(10_000)),
    }


_LANGUAGES = (
    "german",
    "chinese",
    "japanese",
    "arabic",
    "hindi",
    "thai",
    "korean",
    "vietnamese",
    "emoji",
)

RUNS = {
    "a letter": "a" * 3_000,
    "two letters": "ab" * 2_000,
    "spaces": " " * 3_000,
    "spaces and a letter": " " * 3_000 + "x",
    "line breaks": "\n" * 3_000,
    "line breaks and spaces": "\n " * 1_500 + "\n",
    "tabs": "\t" * 2_000 + '"',
    "digits": "1234567890" * 200,
    "dots": "." * 2_000,
    "quotes": '"' * 2_000,
    "no cut": "".join(random.Random(5).choice("abcdefghij") for _ in range(3_000)),
    "kanji": "日" * 1_000,
    "emoji": "👍🏽" * 500,
    "combining": "e" + "\u0301" * 1_000,
}
"""Long runs without variety, on which careless encoders take quadratic time."""

ATOMS = [
    *" \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff",
    *("  ", "   ", "\r\n", "\n\n", " \n", "\n ", "\t\t"),
    *"aAzZ01239_-.,:;!?\"'`(){}[]<>|/\\@#$%^&*+=~",
    *("'s", "'S", "'\u017f", "'ll", "'LL", "\u2019s", "n't", "\u212a", "\u0130", "\u0131"),
    *("\u0345", "\u0301", "e\u0301", "\u0308", "\u200d", "\ufe0f", "\u20e3"),
    *("é", "ß", "Ǆ", "ǅ", "ǆ", "ª", "ʰ", "ˮ", "Σ", "ς", "ﬁ", "\u00c5", "\u212b"),
    *(
        "中",
        "龥",
        "龦",
        "\u3007",
        "ぁ",
        "ゟ",
        "ー",
        "ヿ",
        "\u3040",
        "\u30a0",
        "한",
        "ᄀ",
        "ก",
        "ำ",
        "א",
        "ع",
        "ा",
    ),
    *("½", "²", "Ⅷ", "٣", "\U0001d7d9", "㊿", "1", "12", "123", "1234"),
    *("👍", "👍🏽", "🇩🇪", "👩\u200d👧", "𓀀", "\U0001f9ff", "\U000e0001", "\ue000", "\U0010ffff"),
    *("\x00", "\x07", "\x7f", "\xad", "\ufffd", "\ufffe"),
    *("Ġ", "Ċ", "<0x0A>", "//", "/*", "->", "==", '{"', '":', '","', "http://", "ing", " the"),
]
"""What adversarial texts are put together from: where pieces begin or end in some tokenizer."""


def adversarial_texts(seed: int, count: int, length: int = 16) -> list[str]:
    """Texts of a few atoms each."""
    rng = random.Random(seed)
    return ["".join(rng.choices(ATOMS, k=rng.randrange(1, length))) for _ in range(count)]
