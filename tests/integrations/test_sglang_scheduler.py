"""Grammars in SGLang's scheduler: its own manager, requests and sampling, without a model."""

import json
import re
import time
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

import torch.distributed as dist
from sglang.srt.constrained import grammar_manager
from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject
from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_TOKEN
from sglangcases import DATE, HOSTILE, KINDS, PERSON, is_json
from sglangharness import Running, SmallScheduler, end_id

from ffwd.adapters.sglang.backend import FfwdGrammarBackend

SEED = 20261122


@pytest.fixture
def scheduler() -> Any:
    print("seed", SEED)
    with SmallScheduler(seed=SEED, constrained_json_max_whitespace_cnt=1) as made:
        yield made


def abort_text(req: Any) -> str:
    reason = req.finished_reason
    assert isinstance(reason, FINISH_ABORT), reason
    return reason.message


def test_forty_mixed_requests_and_hostile_ones(scheduler: SmallScheduler) -> None:
    """Every output is what was asked for, and what cannot be compiled fails alone."""
    mixed = [KINDS[i % len(KINDS)] for i in range(40)]
    good = [(scheduler.request(f"r{i}", **asked), check) for i, (asked, check) in enumerate(mixed)]
    plain = [scheduler.request(f"plain{i}", max_new_tokens=30) for i in range(4)]
    bad = [(scheduler.request(f"bad{i}", **asked), part) for i, (asked, part) in enumerate(HOSTILE)]
    everyone = [req for req, _ in good] + plain + [req for req, _ in bad]
    scheduler.random.shuffle(everyone)
    scheduler.run(scheduler.admit(everyone))
    for req, part in bad:
        message = abort_text(req)
        assert message.startswith("Failed to compile"), message
        assert part in message
    for req, check in good:
        assert isinstance(req.finished_reason, FINISH_MATCHED_TOKEN), (req.rid, req.finished_reason)
        assert req.output_ids[-1] == end_id()
        assert check(scheduler.text(req)), (req.rid, scheduler.text(req))
    for req in plain:
        assert req.finished()


def test_grammars_are_compiled_once_and_cached(scheduler: SmallScheduler) -> None:
    """The second request with the same text does not wait, and what it does is its own."""
    asked = {"json_schema": json.dumps(PERSON)}
    first, twin = scheduler.request("first", **asked), scheduler.request("twin", **asked)
    scheduler.admit([first, twin])
    assert scheduler.backend._compiled.stats().misses == 1
    second = scheduler.request("second", **asked)
    assert not scheduler.manager.process_req_with_grammar(second)
    assert second.grammar.grammar is first.grammar.grammar is twin.grammar.grammar
    scheduler.run([first])
    assert second.grammar.num_tokens == twin.grammar.num_tokens == 0
    scheduler.run([second, twin])
    for req in (first, second, twin):
        assert is_json(PERSON, scheduler.text(req))


def test_running_requests_do_not_wait_for_a_compilation(
    scheduler: SmallScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SGLang would look for as long as its interval says, which is for ever here.

    A scheduler that shares its queue with no other process does not even sleep.
    """
    may_compile = Event()
    compile_it = FfwdGrammarBackend.dispatch_json

    def compile_later(self: FfwdGrammarBackend, text: str) -> Any:
        assert may_compile.wait(60)
        return compile_it(self, text)

    monkeypatch.setattr(FfwdGrammarBackend, "dispatch_json", compile_later)
    manager = scheduler.manager
    request = scheduler.request("newcomer", json_schema=json.dumps(PERSON))
    quick = scheduler.request("quick", regex="a+")
    assert manager.process_req_with_grammar(request)
    looks = 0
    for batch in ("running_batch", "last_batch"):
        for processes in (1, 2):
            with monkeypatch.context() as patch:
                patch.setattr(manager, "SGLANG_GRAMMAR_POLL_INTERVAL", 1e9)
                patch.setattr(manager, "grammar_sync_size", processes)
                patch.setattr(dist, "all_gather_object", gather_from_itself)
                if processes == 1:
                    awake = SimpleNamespace(perf_counter=time.perf_counter)
                    patch.setattr(grammar_manager, "time", awake)
                patch.setattr(manager.scheduler, batch, Running(31))
                assert manager.get_ready_grammar_requests() == []
                assert manager.SGLANG_GRAMMAR_POLL_INTERVAL == 1e9
            looks += 1
            assert manager.grammar_queue == [request]
            assert request.grammar_wait_ct == looks
    scheduler.running.count = 31
    assert manager.process_req_with_grammar(quick)
    quick.grammar.result(60)
    assert manager.get_ready_grammar_requests() == [quick]
    assert manager.grammar_queue == [request]
    may_compile.set()
    scheduler.running.count = 0
    scheduler.run(scheduler.admit([]) or [request])
    assert is_json(PERSON, scheduler.text(request))


def gather_from_itself(gathered: list[Any], sent: Any, **_: Any) -> None:
    """`torch.distributed.all_gather_object` where all processes send the same."""
    gathered[:] = [sent] * len(gathered)


def test_a_grammar_that_is_never_ready_times_out(
    scheduler: SmallScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After as many looks as SGLang says, whether or not requests are running."""
    may_compile = Event()
    monkeypatch.setattr(
        FfwdGrammarBackend, "dispatch_json", lambda *_: may_compile.wait(60) and None
    )
    manager = scheduler.manager
    monkeypatch.setattr(manager, "SGLANG_GRAMMAR_MAX_POLL_ITERATIONS", 3)
    monkeypatch.setattr(manager, "SGLANG_GRAMMAR_POLL_INTERVAL", 1e-6)
    for count in (0, 31):
        scheduler.running.count = count
        request = scheduler.request(f"{count}", json_schema=json.dumps({"const": count}))
        assert manager.process_req_with_grammar(request)
        assert manager.get_ready_grammar_requests() == []
        assert manager.get_ready_grammar_requests() == []
        assert manager.get_ready_grammar_requests() == [request]
        request.update_finish_state(0)
        assert "timed out" in abort_text(request)
    may_compile.set()


def test_a_refused_grammar_is_refused_again_from_the_cache(scheduler: SmallScheduler) -> None:
    messages = set()
    for name in ("first", "second"):
        req = scheduler.request(name, regex="(a")
        scheduler.run(scheduler.admit([req]))
        messages.add(abort_text(req))
    assert len(messages) == 1
    assert isinstance(scheduler.backend.cache[("regex", "(a")], InvalidGrammarObject)


def test_a_token_outside_of_the_grammar_fails_its_request_only(scheduler: SmallScheduler) -> None:
    """Should something sample past the mask, SGLang aborts the request with ffwd's text."""
    wrong, right = (scheduler.request(name, regex=DATE) for name in ("wrong", "right"))
    scheduler.admit([wrong, right])
    x = scheduler.tokenizer.encode("x")
    scheduler.commit(wrong, x)
    scheduler.run([wrong, right])
    assert f"refuses token {x[0]} (b'x') at position 0" in abort_text(wrong)
    assert re.fullmatch(DATE, scheduler.text(right))


@pytest.mark.parametrize("token", [639, 640, 10**9, -1])
def test_tokens_that_are_none(scheduler: SmallScheduler, token: int) -> None:
    """Padding of the output layer and numbers outside of it."""
    (req,) = scheduler.admit([scheduler.request("r", regex=DATE)])
    with pytest.raises(ValueError, match=r"refuses token .*no text"):
        req.grammar.accept_token(token)
    assert req.grammar.num_tokens == 0
