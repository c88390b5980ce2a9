"""`replay`: a recording of a text that is there already."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ffwd._bitmask import allocate_bitmask
from ffwd._native import CompiledGrammar, Matcher
from ffwd.tokenizer.errors import lone_surrogate
from ffwd.view.recorder import Recorder
from ffwd.view.recording import Recording


def replay(
    grammar: CompiledGrammar,
    text: str | bytes | Sequence[int],
    *,
    matcher: Matcher | None = None,
    forced: bool = True,
    title: str = "",
    names: Callable[[int], str] | None = None,
    prompt_ids: Sequence[int] = (),
    taken_back: Sequence[int] = (),
) -> Recording:
    """Return a recording of the tokens of a text, as if a model had written it.

    It shows which tokens would be forced and which allowed. If the grammar rejects the text, the
    recording ends with the reason.

    Args:
        grammar: Compiled for the tokenizer.
        text: The text, which the tokenizer tokenizes, or token ids.
        matcher: A fresh matcher of the grammar, for one with options; it ends after the text.
        forced: Whether forced tokens skip the mask; otherwise each is masked.
        title: The title of the recording.
        names: The names of control tokens.
        prompt_ids: The ids before the text.
        taken_back: The removed tokens before the text; see `Recorder`.

    Raises:
        TextError: The text has a lone surrogate.
        VocabularyError: The grammar's vocabulary cannot encode texts.
        TokenError: An id outside the vocabulary.
    """
    vocabulary = grammar.vocabulary
    if isinstance(text, str):
        characters = text
        try:
            text = characters.encode()
        except UnicodeEncodeError as error:
            raise lone_surrogate(characters, error.start) from error
    ids = list(vocabulary.encode(text) if isinstance(text, bytes) else text)
    follower = grammar.matcher() if matcher is None else matcher
    controls = {i: names(i) for i in ids if vocabulary.token_bytes(i) is None} if names else None
    if names is not None and controls is not None:
        controls |= {i: names(i) for i in (*vocabulary.eos_token_ids, *prompt_ids)}
    recorder = Recorder(
        vocabulary, title=title, prompt_ids=prompt_ids, taken_back=taken_back, names=controls
    )
    bitmask = allocate_bitmask(1, vocabulary.vocab_size)
    place, refusal = 0, None
    while place < len(ids):
        started = time.perf_counter_ns()
        if forced and not follower.is_terminated():
            run = _common(follower.fast_forward_tokens(), ids[place:])
            if run and follower.accept_tokens(run):
                recorder.forced(run, time.perf_counter_ns() - started)
                place += len(run)
                continue
        if not follower.is_terminated():
            begun = time.perf_counter_ns()
            follower.fill_bitmask(bitmask, 0)
            recorder.masked(bitmask[0], time.perf_counter_ns() - begun)
        begun = time.perf_counter_ns()
        if follower.is_terminated() or not follower.accept_token(ids[place]):
            refusal = str(follower.explain(ids[place]).answer)
            break
        recorder.sampled(ids[place], accept=time.perf_counter_ns() - begun)
        place += 1
    refused = b"".join(vocabulary.token_bytes(i) or b"" for i in ids[place:])
    return recorder.recording(replayed=True, refused=refused, refusal=refusal)


def _common(left: Sequence[int], right: Sequence[int]) -> list[int]:
    found = []
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        found.append(one)
    return found
