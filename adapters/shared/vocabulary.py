"""The vocabulary of an engine: its tokenizer object, the width of its logits, its end tokens."""

from collections.abc import Iterable
from typing import Any

from ffwd import Vocabulary, VocabularyError
from ffwd.tokenizer import load


def engine_vocabulary(
    tokenizer: Any,
    *,
    vocab_size: int | None = None,
    eos_token_ids: Iterable[int] = (),
    stated: bool = True,
) -> Vocabulary:
    """Return the vocabulary for an engine's tokenizer.

    Args:
        tokenizer: What the engine holds: a tokenizer of transformers, tokenizers, mistral-common or
            tiktoken, or an object that wraps one, as `tokenizer`, `_tokenizer` or `tok` of it.
        vocab_size: The width of the model's logits; by default what the tokenizer states.
        eos_token_ids: What ends an output in addition to what the tokenizer states, for instance
            the list of the model's generation_config.
        stated: Whether what the tokenizer states counts where there are `eos_token_ids`. An engine
            that goes on after such a token has to be asked what it stops at.

    Raises:
        VocabularyError: ffwd cannot read this tokenizer, or nothing says what ends an output. The
            text names the tokenizer's class and what would work.

    """
    eos_token_ids = list(eos_token_ids)
    last: VocabularyError | None = None
    for candidate in _candidates(tokenizer):
        try:
            loaded = load(candidate)
        except VocabularyError as error:
            last = last or error
            continue
        ends = {*map(int, eos_token_ids)}
        if stated or not ends:
            ends.update(loaded.eos_token_ids)
        return loaded.vocabulary(vocab_size=vocab_size, eos_token_ids=sorted(ends) or None)
    raise VocabularyError(
        f"ffwd cannot read the engine's tokenizer, {type(tokenizer).__module__}."
        f"{type(tokenizer).__qualname__}: {last}"
    )


def _candidates(tokenizer: Any) -> Iterable[Any]:
    seen: list[Any] = []
    following = [tokenizer]
    while following:
        candidate = following.pop(0)
        if candidate is None or any(candidate is other for other in seen) or len(seen) > 8:
            continue
        seen.append(candidate)
        yield candidate
        # How engines wrap a tokenizer: SGLang and vLLM around mistral-common and tiktoken.
        names = ("tokenizer", "_tokenizer", "tok", "mistral")
        following.extend(getattr(candidate, name, None) for name in names)
