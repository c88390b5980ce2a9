"""`replay`: a recording of a text that is there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ffwd._native import CompiledGrammar, Matcher
from ffwd.tokenizer.errors import lone_surrogate
from ffwd.view.recorder import Recorder
from ffwd.view.recording import Recording
from ffwd.view.walk import walk


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
    place, refusal = 0, None
    for stretch in walk(follower, ids, forced=forced):
        if stretch.mask is not None:
            recorder.masked(stretch.mask, stretch.mask_time)
        if not stretch.accepted:
            refusal = str(follower.explain(ids[place]).answer)
        elif stretch.forced:
            recorder.forced(stretch.tokens, stretch.accept_time)
            place += len(stretch.tokens)
        else:
            recorder.sampled(ids[place], accept=stretch.accept_time)
            place += 1
    refused = b"".join(vocabulary.token_bytes(i) or b"" for i in ids[place:])
    return recorder.recording(replayed=True, refused=refused, refusal=refusal)
