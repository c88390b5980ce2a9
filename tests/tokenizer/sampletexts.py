"""Texts to encode: natural languages, code, JSON, emoji, and random ones."""

import random

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
