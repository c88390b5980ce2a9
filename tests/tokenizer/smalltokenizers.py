"""Small tokenizers, made by hand, for what real ones do not show."""

from collections.abc import Sequence

from realtokenizers import byte_characters
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

LETTERS = byte_characters()


def byte_level(
    added: Sequence[AddedToken | str] = (), *, end: str | None = "</s>", **model: object
) -> Tokenizer:
    """Byte-level BPE: id b is byte b, 256 is `ab`, then the added tokens and a special `end`."""
    vocabulary = {letter: byte for byte, letter in enumerate(LETTERS)} | {"ab": 256}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("a", "b")], **model))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(list(added))
    if end is not None:
        tokenizer.add_special_tokens([AddedToken(end, special=True, normalized=False)])
    return tokenizer


def fallback(pieces: Sequence[str] = (), *, bytes_too: bool = True) -> Tokenizer:
    """BPE with `▁` for a space: ids 0 to 2 `<unk> <s> </s>`, the bytes, `▁`, `a`, `b`, `▁a`."""
    names = ["<unk>", "<s>", "</s>"]
    names += [f"<0x{byte:02X}>" for byte in range(256)] if bytes_too else []
    names += ["▁", "a", "b", "▁a", *pieces]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={name: i for i, name in enumerate(names)},
            merges=[("▁", "a")],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=bytes_too,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer
