"""Masks of structural tags over real vocabularies, beside XGrammar's."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import realtokenizers
import xgrammar
from compiled import mask, unpacked
from structuraltags import CASES

import ffwd
import ffwd.tokenizer


def vocabulary(name: str) -> ffwd.Vocabulary:
    real = realtokenizers.load(name)
    return ffwd.tokenizer.from_huggingface(
        real.tokenizer, vocab_size=real.width, eos_token_ids=real.eos_token_ids
    )


@cache
def beside_peer(name: str) -> tuple[ffwd.Vocabulary, list[int], Any]:
    """The vocabulary, its tokens of ASCII, and XGrammar's compiler for it.

    Where characters are cut, the two differ: nothing that is not UTF-8 comes from here.
    """
    ours = vocabulary(name)
    tokens = [ours.token_bytes(token) or b"" for token in range(ours.vocab_size)]
    information = xgrammar.TokenizerInfo(tokens, stop_token_ids=list(ours.eos_token_ids))
    plain = [token for token, data in enumerate(tokens) if data and max(data) < 128]
    return ours, plain, xgrammar.GrammarCompiler(information, cache_enabled=False)


@pytest.mark.parametrize("tokenizer", ["gpt2", "mistral-v3"])
@pytest.mark.parametrize(
    "name", ["triggered", "triggered in tag", "separated", "dispatch, suffix", "tag, several ends"]
)
def test_masks_of_real_vocabularies(tokenizer: str, name: str) -> None:
    """Equal after every token of the texts, as the tokenizer cuts them."""
    ours, plain, compiler = beside_peer(tokenizer)
    form, texts = CASES[name]
    document = {"type": "structural_tag", "format": form}
    engine = ffwd.compile(ffwd.structural_tag(document), ours)
    peer = xgrammar.GrammarMatcher(compiler.compile_structural_tag(document))
    bitmask = xgrammar.allocate_token_bitmask(1, ours.vocab_size)
    columns = [*plain, *ours.eos_token_ids]
    for text in texts:
        matcher = engine.matcher()
        peer.reset()
        for token in ours.encode(text.encode()):
            peer.fill_next_token_bitmask(bitmask)
            theirs = unpacked(bitmask.numpy()[0], ours.vocab_size)[columns]
            different = np.flatnonzero(mask(matcher, ours.vocab_size)[columns] != theirs)
            assert not len(different), [ours.token_bytes(columns[i]) for i in different[:5]]
            assert matcher.accept_token(token) == peer.accept_token(token)


def test_a_tag_in_a_vocabulary_that_has_its_tokens() -> None:
    """Mistral's mark of calls is one token, and its name is no text of an answer."""
    ours, _, _ = beside_peer("mistral-v3")
    names = ours.token_names
    name = "[TOOL_CALLS]"
    form = {
        "type": "triggered_tags",
        "triggers": [name],
        "tags": [
            {
                "type": "tag",
                "begin": f"{name}go ",
                "content": {"type": "const_string", "value": "x"},
                "end": name,
            }
        ],
    }
    matcher = ffwd.compile(ffwd.structural_tag({"format": form}), ours).matcher()
    assert matcher.accept_tokens(ours.encode(b"so: "))
    assert matcher.accept_token(names[name])
    assert matcher.forced_bytes() == b"go x"
    assert matcher.accept_tokens(ours.encode(b"go x"))
    assert matcher.accept_token(names[name])
    assert not matcher.accept_tokens(ours.encode(name.encode()))
