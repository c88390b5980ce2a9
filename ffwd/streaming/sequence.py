"""`Sequence`: tokens and their text, with offsets."""

from ffwd._native import TokenSequence


class Sequence(TokenSequence):
    """The tokens of a request so far, with their text and offsets.

    It is made from a `Decoder` or a tokenizer, the `prompt_ids`, which are counted apart from
    appended tokens, and `skip_special_tokens`. `append_token` and `append_tokens` append tokens;
    with a tokenizer, `append_text` appends texts.
    """

    def append_text(self, text: str) -> list[int]:
        """Append the tokens of a text, and return them.

        No special token is found in the text. If it continues a text, the tokenizer adds no space
        before it. It does not change earlier tokens.

        Raises `TypeError` if the sequence was made from a `Decoder`, which cannot encode, and
        `TextError` for a text that cannot be encoded.
        """
        encode = getattr(self.source, "encode", None)
        if encode is None:
            raise TypeError(
                f"append_text needs a sequence that was made with a tokenizer, not with a "
                f"{type(self.source).__name__}: append tokens instead"
            )
        ids: list[int] = encode(text, prefix_space=self.at_text_start)
        self.append_tokens(ids)
        return ids
