"""A grammar object of SGLang's backend: copies, rollbacks, drafts, masks, and where masks fail."""

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

import torch
from sglang.srt.constrained.base_grammar_backend import GrammarRow
from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglang.srt.speculative.spec_utils import GrammarTree, build_grammar_vocab_mask
from sglangharness import LOGITS_WIDTH, SmallScheduler, end_id, tiny_tokenizer

import ffwd
from ffwd.adapters.sglang.cache import GrammarObjectCache

SEED = 7
COLOURS = json.dumps({"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 2})


@pytest.fixture(scope="module")
def scheduler() -> Any:
    print("seed", SEED)
    with SmallScheduler(seed=SEED) as made:
        yield made


def grammar(scheduler: SmallScheduler, kind: str, text: str) -> Any:
    value, hit = scheduler.backend.get_cached_or_future_value((kind, text), False)
    return value if hit else value.result()


def row(grammar: Any) -> list[int]:
    mask = grammar.allocate_vocab_mask(LOGITS_WIDTH, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    return mask[0].tolist()


def allowed(words: list[int]) -> list[int]:
    return [token for token in range(LOGITS_WIDTH) if words[token // 32] >> (token % 32) & 1]


def test_rollbacks_and_copies_follow_the_text(scheduler: SmallScheduler) -> None:
    """Random walks with steps back; the mask is that of a fresh grammar after the same tokens."""
    rng = random.Random(SEED)
    fresh = grammar(scheduler, "json", COLOURS)
    walker, tokens = fresh.copy(), []
    for _ in range(300):
        if tokens and rng.random() < 0.3:
            back = rng.randint(1, min(4, len(tokens)))
            walker.rollback(back)
            del tokens[-back:]
        else:
            # After the end SGLang may still bring tokens; they count for rollbacks.
            token = 9 if walker.is_terminated() else rng.choice(allowed(row(walker)))
            walker.accept_token(token)
            assert walker.current_token == token
            tokens.append(token)
        if rng.random() < 0.2:
            walker, left = walker.copy(), walker
            left.rollback(len(tokens))
        again = fresh.copy()
        for token in tokens:
            again.accept_token(token)
        assert (walker.num_tokens, walker.is_terminated()) == (len(tokens), end_id() in tokens)
        assert again.is_terminated() or row(walker) == row(again)
    assert fresh.num_tokens == 0
    with pytest.raises(IndexError):
        fresh.rollback(1)


def test_the_end_counts_once_and_can_be_taken_back(scheduler: SmallScheduler) -> None:
    ended = grammar(scheduler, "regex", "7")
    (seven,) = tiny_tokenizer().encode("7")
    ended.accept_token(seven)
    assert allowed(row(ended)) == [end_id()]
    ended.accept_token(end_id())
    ended.accept_token(end_id())
    ended.accept_token(5)
    assert ended.is_terminated()
    ended.rollback(2)
    assert ended.is_terminated()
    ended.rollback(1)
    assert not ended.is_terminated()
    assert allowed(row(ended)) == [end_id()]


def test_a_batch_is_filled_like_its_rows(scheduler: SmallScheduler) -> None:
    """Rows that are not named stay as they are; grammars of another backend fill their own."""
    other = SimpleNamespace(fill_vocab_mask=lambda mask, idx: mask[idx].fill_(123))
    grammars = {
        0: grammar(scheduler, "json", COLOURS),
        2: grammar(scheduler, "regex", "[a-z]{3}"),
        3: grammar(scheduler, "ebnf", 'root ::= "x" | "yes"'),
        5: other,
    }
    one = grammars[0]
    mask = one.allocate_vocab_mask(LOGITS_WIDTH, 7, "cpu")
    one.fill_vocab_mask_batched([GrammarRow(at, of) for at, of in grammars.items()], mask)
    assert [row(grammars[at]) for at in (0, 2, 3)] == mask[[0, 2, 3]].tolist()
    assert (mask[5] == 123).all()
    assert (mask[[1, 4, 6]] == -1).all()
    one.reset_vocab_mask(mask)
    assert (mask == -1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_logits_are_masked(scheduler: SmallScheduler, dtype: torch.dtype) -> None:
    colours = grammar(scheduler, "json", COLOURS)
    mask = colours.allocate_vocab_mask(LOGITS_WIDTH, 2, "cpu")
    colours.fill_vocab_mask(mask, 1)
    mask = colours.move_vocab_mask(mask, "cpu")
    logits = torch.zeros(2, LOGITS_WIDTH, dtype=dtype)
    colours.apply_vocab_mask(logits=logits, vocab_mask=mask)
    assert torch.isfinite(logits[0]).all()
    assert torch.isfinite(logits[1]).nonzero().flatten().tolist() == allowed(row(colours))


def test_masks_for_trees_of_drafts(scheduler: SmallScheduler) -> None:
    """SGLang walks a tree of drafts with accepts and rollbacks; each node gets its own mask."""
    req = scheduler.request("r", json_schema=COLOURS)
    plain = scheduler.request("plain")
    scheduler.admit([req, plain])
    encode = tiny_tokenizer().encode
    (bracket,), (wrong,), (quote,) = encode("["), encode("z"), encode('"')
    before = row(req.grammar)
    # Nodes: 0 is the last committed token; 1 and 3 are its children, 2 is a child of 1.
    tokens = torch.tensor([[0, bracket, quote, wrong], [0, 1, 2, 3]])
    child = torch.tensor([[1, 2, -1, -1], [1, 2, 3, -1]])
    sibling = torch.tensor([[-1, 3, -1, -1], [-1, -1, -1, -1]])
    info = scheduler.sampling_info([req, plain])
    filled = build_grammar_vocab_mask(
        reqs=[req, plain],
        tree=GrammarTree.from_host(child, sibling, tokens),
        sampling_info=info,
        device="cpu",
        barrier=None,
    )
    rows = filled.vocab_mask.tolist()
    after = {}
    for path in ([], [bracket], [bracket, quote]):
        stepped = req.grammar.copy()
        for token in path:
            stepped.accept_token(token)
        after[len(path)] = row(stepped)
    assert [rows[0], rows[1], rows[2]] == [after[0], after[1], after[2]]
    # A refused draft, and a request without grammar: nothing is masked.
    assert {word for line in rows[3:] for word in line} == {-1}
    assert row(req.grammar) == before
    logits = torch.zeros(8, LOGITS_WIDTH)
    filled.apply(logits)
    assert logits[0, bracket] == 0
    assert logits[0, wrong] == -torch.inf


def test_drafts_are_committed_up_to_the_end(scheduler: SmallScheduler) -> None:
    """A verified run that goes past the end token is cut there."""
    req = scheduler.request("r", regex="ab?")
    scheduler.admit([req])
    run = [*tiny_tokenizer().encode("a"), end_id(), 9, 9]
    scheduler.commit(req, run)
    assert req.grammar.is_terminated()
    assert req.grammar.num_tokens == 2
    assert req.finished()


def test_a_mask_that_fails_ends_its_request_alone(
    scheduler: SmallScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks are computed as they are asked for, so a limit may be met in the scheduler's thread."""
    failing, healthy = (scheduler.request(name, json_schema=COLOURS) for name in ("bad", "good"))
    scheduler.admit([failing, healthy])

    class Refusing:
        """A matcher that meets a limit."""

        def __getattr__(self, name: str) -> Any:
            return getattr(failing_matcher, name)

        def fill(self, bitmask: Any, at: int) -> None:
            raise ffwd.FfwdError("a limit was met")

    failing_matcher = failing.grammar._matcher
    failing.grammar._matcher = Refusing()
    # The batch as a whole fails too, as the native function does when one of its rows does.
    monkeypatch.setattr(
        "ffwd.fill_bitmasks", lambda *_, **__: (_ for _ in ()).throw(ffwd.FfwdError("a row"))
    )
    scheduler.run([failing, healthy])
    assert isinstance(failing.finished_reason, FINISH_ABORT)
    assert "a limit was met" in failing.finished_reason.message
    assert set(json.loads(scheduler.text(healthy))) <= {"red", "green"}


def test_the_cache_is_bounded() -> None:
    """Refused grammars count with the client's text; the newest is kept however large."""
    cache = GrammarObjectCache(100_000)
    for number in range(50):
        cache[("json", f"{number:04}" * 2500)] = SimpleNamespace(error_message="no")
        cache.get(("json", "0000" * 2500))
    assert len(cache) == 9
    assert cache.evictions == 41
    assert ("json", "0000" * 2500) in cache
    assert cache.memory_bytes <= 100_000
    cache[("json", "x" * 200_000)] = SimpleNamespace(error_message="no")
    assert len(cache) == 1
    cache.clear()
    assert (len(cache), cache.memory_bytes) == (0, 0)


def test_grammars_that_grow_are_let_go(scheduler: SmallScheduler) -> None:
    """Compiled grammars count with what they hold; those in use live on."""
    one = grammar(scheduler, "regex", "[a-z]{39}(a|b)").compiled.stats()["memory_bytes"]
    cache = GrammarObjectCache(3 * one)
    kept = []
    for number in range(30):
        made = grammar(scheduler, "regex", f"[a-z]{{{number + 40}}}(a|b)")
        cache[("regex", str(number))] = made
        kept.append(made)
    assert cache.evictions > 0
    assert cache.memory_bytes <= 3 * one
    assert all(row(made) == row(kept[0]) for made in kept)


def test_a_refused_token_is_said(scheduler: SmallScheduler) -> None:
    colours = grammar(scheduler, "json", COLOURS)
    with pytest.raises(ValueError, match=r"the json grammar refuses token \d+ \(b'z'\)"):
        colours.accept_token(tiny_tokenizer().encode("z")[0])
    assert colours.num_tokens == 0
    assert repr(colours) == "FfwdGrammar(json, 0 tokens)"
