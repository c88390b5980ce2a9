"""`Sequence`: tokens and text that grow together."""

from ffwd._native import TokenSequence


class Sequence(TokenSequence):
    """The tokens of a request so far, their text, and where each of them lies in it.

    Made with a `Decoder` or a tokenizer, `prompt_ids` that are told apart from what is appended,
    and `skip_special_tokens`. Tokens are appended by `append_token` and `append_tokens`, and with a
    tokenizer texts by `append_text`.
    """

    def append_text(self, text: str) -> list[int]:
        """Appends the tokens of a text, and returns them.

        No special token is found in it. Where it goes on a text, no space is put before it by the
        tokenizer; it does not change the tokens that are there.

        Raises `TypeError` if the sequence was made with a `Decoder`, which cannot encode, and
        `TextError` for what cannot be encoded.
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
