"""Whether a tokenizer belongs to a model, as far as their files show."""

from typing import Any

from ffwd.tokenizer import Tokenizer
from ffwd.tokenizer.table import TokenKind


def model_width(model: Any) -> int:
    """Return the number of logits of a model."""
    weight = getattr(model.get_output_embeddings(), "weight", None)
    if weight is not None:
        return int(weight.shape[0])
    return int(model.config.get_text_config(decoder=True).vocab_size)


def end_tokens(config: Any) -> list[int]:
    """Return the end tokens of a model's configuration, or of its generation config."""
    ends = getattr(config, "eos_token_id", None)
    if ends is None:
        return []
    return [int(end) for end in ends] if isinstance(ends, (list, tuple)) else [int(ends)]


def misfit(model: Any, tokenizer: Tokenizer) -> str | None:
    """Return evidence that the tokenizer belongs to another model, and what to do; or None.

    Two things show it: ids that the model has no logits for, and ends of texts. A model says with
    which token its texts end; in its own tokenizer that is no text.
    """
    width = model_width(model)
    if tokenizer.vocab_size > width:
        return (
            f"the tokenizer has ids up to {tokenizer.vocab_size - 1}, and the model gives logits "
            f"for {width} tokens: they belong to different models. Take the tokenizer's files from "
            "where the weights came from; where tokens were added, call "
            "model.resize_token_embeddings(…) and train it for them"
        )
    stated = {
        *end_tokens(model.config.get_text_config(decoder=True)),
        *end_tokens(model.generation_config),
    }
    # One is enough: configurations often have a default beside the right one.
    known = {*tokenizer.eos_token_ids}
    if not stated or not all(_is_no_end(tokenizer, end) for end in stated):
        return None
    shown = ", ".join(f"{end} ({_shown(tokenizer, end)})" for end in sorted(stated))
    own = ", ".join(f"{end} ({_shown(tokenizer, end)})" for end in sorted(known))
    return (
        f"texts of the model end with token {shown}, and the tokenizer's with "
        f"{own or 'none that it states'}: they belong to different models. Take the tokenizer's "
        "files from where the weights came from; where it is the right one, correct eos_token_id "
        "in config.json and generation_config.json"
    )


def _is_no_end(tokenizer: Tokenizer, token_id: int) -> bool:
    """Return whether a token is text, or none of the tokenizer's."""
    kind = tokenizer.token_kind(token_id)
    data = tokenizer.token_bytes(token_id)
    if kind is TokenKind.EOS and data is not None:
        # In a directory with a model, what the model states counts for its tokenizer, too.
        return token_id in tokenizer.encode(data.decode(errors="replace"))
    return kind in (TokenKind.TEXT, TokenKind.PADDING)


def _shown(tokenizer: Tokenizer, token_id: int) -> str:
    data = tokenizer.token_bytes(token_id)
    return (
        "which it does not have" if data is None else f"the text {data.decode(errors='replace')!r}"
    )
