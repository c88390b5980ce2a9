"""A grammar object of SGLang's backend: copies, rollbacks, drafts, masks, and where masks fail."""

import dataclasses
import json
import random
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

import torch
from sglang.srt.constrained.base_grammar_backend import GrammarRow
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarObject
from sglang.srt.managers.schedule_batch import FINISH_ABORT
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.speculative import spec_utils
from sglang.srt.speculative.spec_utils import GrammarTree, build_grammar_vocab_mask
from sglangharness import LOGITS_WIDTH, SmallScheduler, end_id, tiny_tokenizer

import ffwd
from ffwd.adapters.sglang import step, surface
from ffwd.adapters.sglang.backend import FfwdGrammarBackend
from ffwd.adapters.sglang.cache import GrammarObjectCache
from ffwd.adapters.sglang.grammar import FfwdGrammar
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.adapters.shared.surface import fingerprint

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
    (bracket,), (wrong,) = encode("["), encode("z")
    before = row(req.grammar)
    opened = req.grammar.copy()
    opened.accept_token(bracket)
    # Masks are narrow: of the ways to write what is forced, there is one.
    (quote,) = opened.forced(1)
    assert allowed(row(opened)) == [quote]
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


def random_links(rng: random.Random, nodes: int) -> tuple[list[int], list[int], list[int]]:
    """The parent, first child and next sibling of each node; some nodes are in no tree."""
    parents, child, sibling = [-1] * nodes, [-1] * nodes, [-1] * nodes
    for node in range(1, rng.choice([nodes, rng.randint(1, nodes)])):
        parent = rng.choice([node - 1, rng.randrange(node)])
        parents[node], sibling[node], child[parent] = parent, child[parent], node
    return parents, child, sibling


def random_drafts(rng: random.Random, grammar: Any, parents: list[int]) -> list[int]:
    """Tokens of the nodes: mostly right, some refused, some no tokens of the model."""
    tokens = [0] * len(parents)
    for node, parent in enumerate(parents):
        if parent == -1:
            continue
        way = []
        while parent:
            way.append(tokens[parent])
            parent = parents[parent]
        stepped, may = grammar.copy(), []
        try:
            for token in reversed(way):
                stepped.accept_token(token)
            may = [] if stepped.is_terminated() else allowed(row(stepped))
        except ValueError:
            pass
        wrong = rng.choice([rng.randrange(LOGITS_WIDTH), LOGITS_WIDTH, 10**9])
        tokens[node] = rng.choice(may) if may and rng.random() < 0.8 else wrong
    return tokens


def test_masks_of_random_trees_are_as_sglang_makes_them(scheduler: SmallScheduler) -> None:
    """Bit by bit, for requests at any position, ended ones and those without a grammar."""
    rng = random.Random(SEED)
    own = spec_utils.generate_token_bitmask.__wrapped__
    kinds = [
        ("json", COLOURS),
        ("regex", "ab?"),
        ("ebnf", 'root ::= "x" | "yes"'),
        ("regex", "please answer: (red|blue)"),
    ]
    reqs = [SimpleNamespace(grammar=None)] * 6
    nodes, ended, refused = 8, 0, 0
    for _ in range(60):
        for at, req in enumerate(reqs):
            if req.grammar is None or req.grammar.is_terminated():
                made = None if rng.random() < 0.2 else grammar(scheduler, *rng.choice(kinds))
                reqs[at] = SimpleNamespace(grammar=made)
        links = [random_links(rng, nodes) for _ in reqs]
        tokens = [
            [0] * nodes if req.grammar is None else random_drafts(rng, req.grammar, parents)
            for req, (parents, _, _) in zip(reqs, links, strict=True)
        ]
        child, sibling, drafts = (
            torch.tensor(each) for each in (*list(zip(*links, strict=True))[1:], tokens)
        )
        mine, last = spec_utils.generate_token_bitmask(reqs, child, sibling, drafts, LOGITS_WIDTH)
        wanted, its = own(reqs, child, sibling, drafts, LOGITS_WIDTH)
        assert last is its
        if wanted is None:
            assert mine is None
            continue
        assert torch.equal(mine, wanted)
        refused += int((wanted == -1).all(dim=1).sum())
        for req in reqs:
            if req.grammar is not None:
                may = allowed(row(req.grammar))
                req.grammar.accept_token(rng.choice(may))
                ended += req.grammar.is_terminated()
    assert ended > 10
    assert refused > 100


def test_trees_of_other_grammars_are_left_to_sglang(
    scheduler: SmallScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper for reasoning, for example; one in a batch suffices."""
    monkeypatch.setattr(step, "fill_trees", None)
    ours, other = grammar(scheduler, "json", COLOURS), grammar(scheduler, "regex", "ab?")
    wrapped = ReasonerGrammarObject(other, [9])
    wrapped.maybe_init_reasoning(True)
    reqs = [SimpleNamespace(grammar=each) for each in (ours, wrapped)]
    none = torch.full((2, 2), -1)
    mask, _ = spec_utils.generate_token_bitmask(reqs, none, none, none, LOGITS_WIDTH)
    assert mask[0].tolist() == row(ours)
    assert (mask[1:] == -1).all()


def test_another_source_of_the_walk_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own = spec_utils.generate_token_bitmask.__wrapped__
    monkeypatch.setattr(spec_utils, "generate_token_bitmask", own)
    changed = dataclasses.replace(surface.TREES[1], fingerprints=("other",))
    monkeypatch.setattr(step, "TREES", (surface.TREES[0], changed))
    step.extend_step(FfwdGrammarBackend)
    assert spec_utils.generate_token_bitmask is own
    assert "generate_token_bitmask stays SGLang's own" in caplog.text
    assert "spec_utils.traverse_tree is not as in the SGLang that ffwd supports" in caplog.text
    monkeypatch.setattr(step, "TREES", surface.TREES)
    for _ in range(2):
        step.extend_step(FfwdGrammarBackend)
        assert spec_utils.generate_token_bitmask.__wrapped__ is own


def test_what_is_used_is_listed_with_the_source_that_was_tested() -> None:
    """A new version of SGLang begins here: read what differs, then record it."""
    recorded = {str(symbol): symbol.fingerprints for symbol in surface.SYMBOLS}
    assert recorded == {str(symbol): (fingerprint(symbol),) for symbol in surface.SYMBOLS}


def test_masks_of_batches_are_as_sglang_makes_them(scheduler: SmallScheduler) -> None:
    """Bit by bit, whatever the memory held before, and while earlier masks are still read."""
    rng = random.Random(SEED)
    own = SamplingBatchInfo.update_regex_vocab_mask.__wrapped__
    kinds = [{"json_schema": COLOURS}, {"regex": "ab?"}, {"regex": "please answer: (red|blue)"}, {}]
    running: list[Any] = []
    held: list[tuple[Any, list[list[int]]]] = []
    memory = set()
    for made in range(200):
        if len(running) < rng.choice([1, 4, 6]):
            running += scheduler.admit([scheduler.request(f"r{made}", **rng.choice(kinds))])
        rng.shuffle(running)
        info, other = (scheduler.sampling_info(running) for _ in range(2))
        info.update_regex_vocab_mask()
        own(other)
        if other.grammar_mask is None:
            assert info.grammar_mask is None
        else:
            mask = info.grammar_mask.vocab_mask
            assert torch.equal(mask, other.grammar_mask.vocab_mask)
            memory.add(mask.data_ptr())
            held = [*held, (mask, mask.tolist())][-rng.choice([1, 3]) :]
        assert all(mask.tolist() == words for mask, words in held)
        for req in running:
            if req.grammar is not None and not req.grammar.is_terminated():
                req.grammar.accept_token(rng.choice(allowed(row(req.grammar))))
                req.grammar.finished = rng.random() < 0.05
        if rng.random() < 0.3:
            running.pop()
    assert len(memory) < 20


def test_drafts_are_committed_up_to_the_end(scheduler: SmallScheduler) -> None:
    """A verified run that goes past the end token is cut there."""
    req = scheduler.request("r", regex="ab?")
    scheduler.admit([req])
    run = [*tiny_tokenizer().encode("a"), end_id(), 9, 9]
    scheduler.commit(req, run)
    assert req.grammar.is_terminated()
    assert req.grammar.num_tokens == 2
    assert req.finished()


def failing_grammar(scheduler: SmallScheduler) -> FfwdGrammar:
    """A grammar whose first mask exceeds a limit."""
    limits = ffwd.Limits(call_steps=1)
    compiled = ffwd.compile(ffwd.regex("(a|b|c|d)*x"), scheduler.backend.vocabulary, limits=limits)
    return FfwdGrammar(compiled, GrammarRequest("regex", "(a|b|c|d)*x"))


def test_a_mask_that_fails_ends_its_request_alone(scheduler: SmallScheduler) -> None:
    """Masks are computed as they are asked for, so a limit may be met in the scheduler's thread."""
    failing, healthy = (scheduler.request(name, json_schema=COLOURS) for name in ("bad", "good"))
    scheduler.admit([failing, healthy])
    failing.grammar = failing_grammar(scheduler)
    scheduler.run([failing, healthy])
    assert isinstance(failing.finished_reason, FINISH_ABORT)
    assert "call_steps" in failing.finished_reason.message
    assert set(json.loads(scheduler.text(healthy))) <= {"red", "green"}


def test_a_mask_that_fails_among_drafts(scheduler: SmallScheduler) -> None:
    """In SGLang's walk as in ours; what was wrong at a draft is none of the request before it."""
    none = torch.full((1, 2), -1)
    links = torch.tensor([[1, -1]])
    drafts = torch.tensor([[0, tiny_tokenizer().encode("a")[0]]])
    own = spec_utils.generate_token_bitmask
    for walk in (own, own.__wrapped__):
        req = SimpleNamespace(grammar=failing_grammar(scheduler))
        mask, _ = walk([req], links, none, drafts, LOGITS_WIDTH)
        assert len(allowed(mask[0].tolist())) == 1
        with pytest.raises(ffwd.FfwdError, match="call_steps"):
            req.grammar.accept_token(int(drafts[0, 1]))


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
    one = grammar(scheduler, "regex", "[a-z]{39}(a|b)").grammar.stats()["memory_bytes"]
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
