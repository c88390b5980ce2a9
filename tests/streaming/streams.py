"""What the tests of streams share: decoders of real tokenizers, texts, and tokens cut anywhere."""

from functools import cache

import hypothesis.strategies as st
import realtokenizers

from ffwd._native import Decoder
from ffwd.tokenizer import token_table


@cache
def decoder_of(name: str) -> Decoder:
    """The decoder of one of `realtokenizers.NAMES`."""
    real = realtokenizers.load(name)
    table = token_table(real.tokenizer)
    added = real.tokenizer.get_added_tokens_decoder()
    tokens: list[bytes | None] = []
    for token_id, data in enumerate(table.tokens):
        if data is None and (content := real.tokenizer.id_to_token(token_id)) is not None:
            data = content.encode()
        tokens.append(data)
    special = [token_id for token_id, token in added.items() if token.special]
    return Decoder(tokens, special=special, strip_first_space=real.dummy_space)


def written() -> list[str]:
    """Texts in which characters are often cut by the ends of tokens."""
    return [
        "Hello, world!",
        " a leading space, and two  of them",
        "\u4e16\u754c \u9f98\u9750\u9f49",
        "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u06a9\u06cc\u0627 \u0939\u093f\u0928",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467 family, \U0001f3f4\U000e0067\U000e0062 flag",
        '{"name": "Zo\u00eb", "tags": ["\ufffd", "\\u4e16"]}\n\tdef f(x):\n        return x\n',
        "a genuine \ufffd stays",
    ]


_PIECES = st.one_of(
    st.sampled_from(["a", " ", "\u00e9", "\u4e16", "\ufffd", "\U0001f469", "\u9f98\u9750"]).map(
        str.encode
    ),
    st.sampled_from(
        [b"\x80", b"\xbf", b"\xc0", b"\xc2", b"\xe0", b"\xa0", b"\xed", b"\xef", b"\xf0", b"\x90"]
    ),
    st.binary(max_size=2),
)


@st.composite
def any_tokens(draw: st.DrawFn) -> list[bytes]:
    """Bytes, many of them characters and beginnings of such, cut into tokens anywhere."""
    data = b"".join(draw(st.lists(_PIECES, max_size=12)))
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=8)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
