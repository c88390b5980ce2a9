"""Reasoning: SGLang's own wrapper around ffwd's backend, as `--reasoning-parser` makes it."""

import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject
from sglang.srt.constrained.reasoner_grammar_backend import (
    ReasonerGrammarBackend,
    ReasonerGrammarObject,
)
from sglang.srt.environ import envs
from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglangharness import THINK_END, SmallScheduler, end_id, tiny_tokenizer

from ffwd.adapters.sglang.backend import FfwdGrammarBackend
from ffwd.adapters.sglang.cache import GrammarObjectCache
from ffwd.adapters.sglang.grammar import FfwdGrammar

SEED = 3
WORD = "[a-z]{4}"


@pytest.fixture
def scheduler() -> Any:
    print("seed", SEED)
    with SmallScheduler(seed=SEED, reasoning_parser="qwen3") as made:
        yield made


def think_end() -> int:
    token = tiny_tokenizer().convert_tokens_to_ids(THINK_END)
    assert isinstance(token, int)
    return token


def test_the_backend_is_wrapped_and_bounded(scheduler: SmallScheduler) -> None:
    assert type(scheduler.backend) is ReasonerGrammarBackend
    assert isinstance(scheduler.backend.grammar_backend, FfwdGrammarBackend)
    assert isinstance(scheduler.backend.cache, GrammarObjectCache)


def test_the_grammar_waits_for_the_end_of_the_reasoning(scheduler: SmallScheduler) -> None:
    """In one batch with a request that does not reason, a refused and a free one."""
    thinking = [scheduler.request(f"t{i}", regex=WORD, require_reasoning=True) for i in range(6)]
    direct = scheduler.request("direct", regex=WORD)
    refused = scheduler.request("refused", regex="(", require_reasoning=True)
    plain = scheduler.request("plain", max_new_tokens=20)
    ready = scheduler.admit([*thinking, direct, refused, plain])
    assert isinstance(refused.finished_reason, FINISH_ABORT)
    assert all(type(req.grammar) is ReasonerGrammarObject for req in [*thinking, direct])
    # No random model thinks to an end by itself; a few tokens that could be anything do for it.
    for req in thinking:
        scheduler.commit(req, [40, 41, 42])
        assert req.grammar.grammar.num_tokens == 0
        scheduler.commit(req, [think_end()])
    scheduler.run(ready)
    for req in thinking:
        head, _, answer = scheduler.text(req).partition(THINK_END)
        assert head
        assert re.fullmatch(WORD, answer)
    assert re.fullmatch(WORD, scheduler.text(direct))
    # From the cache, too, each request waits for its own end.
    again = scheduler.request("again", regex=WORD, require_reasoning=True)
    assert not scheduler.manager.process_req_with_grammar(again)
    assert again.grammar._is_thinking()


def test_rollbacks_reach_into_the_reasoning(scheduler: SmallScheduler) -> None:
    req = scheduler.request("r", regex=WORD, require_reasoning=True)
    scheduler.admit([req])
    grammar = req.grammar
    a, b = tiny_tokenizer().encode("x")[0], tiny_tokenizer().encode("q")[0]
    for token in (41, 42, think_end(), a, b):
        grammar.accept_token(token)
    other = grammar.copy()
    grammar.rollback(4)
    assert grammar._is_thinking()
    assert grammar.grammar.num_tokens == 0
    assert other.grammar.num_tokens == 2
    for token in (think_end(), b, a):
        grammar.accept_token(token)
    assert grammar.grammar.num_tokens == 2
    with pytest.raises(ValueError, match="refuses"):
        grammar.accept_token(end_id())


def test_strict_thinking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single tokens are filtered while the model thinks; its budget ends the reasoning."""
    print("seed", SEED)
    with (
        envs.SGLANG_MAX_THINK_TOKENS.override(5),
        SmallScheduler(
            seed=SEED, reasoning_parser="qwen3", enable_strict_thinking=True
        ) as scheduler,
    ):
        constrained = [
            scheduler.request(f"r{i}", regex=WORD, require_reasoning=True) for i in range(4)
        ]
        free = scheduler.request("free", require_reasoning=True, max_new_tokens=30)
        scheduler.run(scheduler.admit([*constrained, free]))
        for req in [*constrained, free]:
            assert think_end() in list(req.output_ids)[:6]
        for req in constrained:
            assert re.fullmatch(WORD, scheduler.text(req).partition(THINK_END)[2])


def frame(content: dict[str, Any]) -> dict[str, Any]:
    """A message, as a format that frames its turns puts it around an answer."""
    control = [tiny_tokenizer().convert_tokens_to_ids(t) for t in ("<tool_call>", "</tool_call>")]
    around = [{"type": "token", "token": token} for token in control]
    return {
        "type": "structural_tag",
        "format": {"type": "sequence", "elements": [around[0], content, around[1]]},
    }


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        ("json", json.dumps({"enum": ["red", "<tool_call>"]}), '"<tool_call>"'),
        ("regex", "[a-z]+", "red"),
        ("ebnf", 'root ::= "red" | "green"', "green"),
    ],
)
def test_answers_in_frames(scheduler: SmallScheduler, kind: str, text: str, answer: str) -> None:
    """A frame's tokens stand around the answer, and the answer cannot be made of them."""
    backend = scheduler.backend.grammar_backend
    opening, closing = (
        tiny_tokenizer().convert_tokens_to_ids(t) for t in ("<tool_call>", "</tool_call>")
    )
    (extra,) = tiny_tokenizer().encode("red")
    # One of them is text in this vocabulary, as formats have it whose control tokens are.
    backend.reserve_framing_tokens([opening, closing, extra])
    inner = getattr(backend, f"dispatch_{kind}")(text)
    framed = backend.compile_framed_grammar(inner, frame)
    assert type(framed) is FfwdGrammar
    framed.accept_token(opening)
    for refused in (closing, extra):
        with pytest.raises(ValueError, match="refuses"):
            framed.accept_token(refused)
    # Text that a frame's token would spell is written with others.
    for letter in answer:
        framed.accept_token(*tiny_tokenizer().encode(letter))
    framed.accept_token(closing)
    framed.accept_token(end_id())
    assert framed.is_terminated()


def test_a_frame_that_cannot_be_compiled_is_an_error(scheduler: SmallScheduler) -> None:
    backend = scheduler.backend.grammar_backend
    inner = backend.dispatch_regex("a")
    framed = backend.compile_framed_grammar(inner, lambda _: {"format": {"type": "song"}})
    assert isinstance(framed, InvalidGrammarObject)
    assert "song" in framed.error_message
