"""Forced tokens as drafts in SGLang: its n-gram worker's trees, masks and greedy verification.

The corpus of n-grams is a stand-in, since SGLang compiles its own when it starts. Its worker, what
it derives of a tree, the masks and the kernel of the verification are SGLang's; the kernel runs in
Triton's interpreter. Logits depend on the request and the position only. With noise that depends on
them, too, the largest logit is a sample at a temperature.
"""

import dataclasses
import importlib
import itertools
import json
import random
import sys
import zlib
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

import torch
import triton
from sglang.srt.arg_groups.overrides import record_foreign_defaults
from sglang.srt.arg_groups.speculative_hook import _handle_ngram
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_utils import GrammarTree, build_grammar_vocab_mask
from sglangharness import LOGITS_WIDTH, THINK_END, SmallScheduler, tiny_tokenizer

from ffwd.adapters import sglang as plugin
from ffwd.adapters.sglang import speculation, surface
from ffwd.adapters.sglang.speculation import ForcedDraftsError

plugin.register()

SEED = 20261124
ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "colour": {"enum": ["red", "green"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "done": {"type": "boolean"},
    },
    "required": ["name", "colour", "count", "done"],
    "additionalProperties": False,
}
KINDS: list[dict[str, Any]] = [
    {"json_schema": json.dumps(ORDER)},
    {"regex": "please answer: (red|green) and no other"},
    {"ebnf": 'root ::= "get_weather(" [a-z]{1,5} ")" " and "? "x"'},
    {},
]


class Stub(ModuleType):
    """A module whose names are all None: SGLang imports them, and nothing here calls them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@pytest.fixture(scope="module")
def worker_module() -> Any:
    """The adapter's module, for which SGLang's scheduler imports what this environment lacks."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("sgl_kernel", "sgl_kernel.speculative", "setproctitle", "uvloop"):
            if name not in sys.modules:
                patch.setitem(sys.modules, name, Stub(name))
        yield importlib.import_module("ffwd.adapters.sglang.drafts")


@pytest.fixture(scope="module")
def verify_tree() -> Any:
    """SGLang's kernel for the greedy verification of trees, in Triton's interpreter."""
    module = importlib.import_module("sglang.kernels.ops.speculative.spec_tree")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triton.knobs.runtime, "interpret", True)
        yield importlib.reload(module).verify_tree_greedy_triton
    importlib.reload(module)


def tree_of(parents: list[int]) -> np.ndarray[Any, Any]:
    """For each node which nodes are on the way to it, as SGLang's corpus says it."""
    mask = np.eye(len(parents), dtype=np.int64)
    for node, parent in enumerate(parents[1:], start=1):
        mask[node] |= mask[parent]
    return mask


class Corpus:
    """Trees of drafts of any form: tokens that a document may have, and wrong ones."""

    def __init__(self, nodes: int) -> None:
        self._rng = random.Random(SEED)
        self._nodes = nodes

    def synchronize(self) -> None:
        pass

    def batch_get(self, ids: list[str], tokens: list[list[int]], _: list[int]) -> Any:
        drafts, masks = [], []
        for last in (line[-1] for line in tokens):
            rng = self._rng
            parents = [
                rng.choice([0, node - 1, rng.randrange(node)]) for node in range(1, self._nodes)
            ]
            parents = [-1, *parents]
            drafts += [last, *(self._rng.randrange(LOGITS_WIDTH) for _ in parents[1:])]
            masks.append(tree_of(parents).reshape(-1))
        return np.array(drafts), np.concatenate(masks)


class Decoder:
    """Requests from their first token to their end, with drafts and their verification."""

    def __init__(self, scheduler: SmallScheduler, module: Any, verify: Any, nodes: int) -> None:
        self.scheduler = scheduler
        self._derive_links = module.NGRAMWorker._prepare_draft_tokens.__globals__[
            "_derive_tree_links"
        ]
        self._verify = verify
        self._nodes = nodes
        worker = object.__new__(module.ForcedDraftsWorker)
        worker.draft_token_num, worker.max_trie_depth = nodes, 18
        worker.enable_overlap, worker.ngram_corpus = True, Corpus(nodes)
        self._worker = worker
        self.passes = self.forced = 0

    def scores(self, req: Any, position: int, temperature: float) -> torch.Tensor:
        generator = torch.Generator().manual_seed(zlib.crc32(f"{req.rid} {position}".encode()))
        scores = torch.randn(LOGITS_WIDTH, generator=generator)
        if temperature:
            noise = torch.rand(LOGITS_WIDTH, generator=generator)
            scores = scores / temperature - (-noise.log()).log()
        return scores

    def step(self, reqs: list[Any], temperature: float) -> None:
        nodes, count = self._nodes, len(reqs)
        forced = [
            [] if req.grammar is None else _inner(req.grammar).forced(nodes - 1) for req in reqs
        ]
        batch = SimpleNamespace(reqs=reqs, grammar_needs_sync=lambda: True)
        drafts, mask = self._worker._prepare_draft_tokens(batch)
        assert drafts.shape == (count * nodes,)
        assert mask.shape == (count * nodes * nodes,)
        child, sibling = self._derive_links(mask, count, nodes)
        tokens = torch.from_numpy(drafts).to(torch.int64).view(count, nodes)
        grammar_mask = build_grammar_vocab_mask(
            reqs=reqs,
            tree=GrammarTree.from_host(child, sibling, tokens),
            sampling_info=self.scheduler.sampling_info(reqs),
            device="cpu",
            barrier=None,
        )
        depths = mask.reshape(count, nodes, nodes).sum(-1)
        logits = torch.stack(
            [
                self.scores(req, len(req.output_ids) + int(depth), temperature)
                for req, line in zip(reqs, depths, strict=True)
                for depth in line
            ]
        )
        if grammar_mask is not None:
            grammar_mask.apply(logits)
        predict = torch.zeros(count * nodes, dtype=torch.int32)
        index = torch.full((count, nodes), -1, dtype=torch.int32)
        accepted = torch.zeros(count, dtype=torch.int32)
        places = torch.arange(count * nodes).view(count, nodes)
        target = logits.argmax(dim=-1).view(count, nodes)
        self._verify(predict, index, accepted, tokens, places, child, sibling, target)
        for at, req in enumerate(reqs):
            kept = index[at, : int(accepted[at]) + 1].long()
            taken = predict[kept].tolist()
            # Whatever is forced is accepted, at any temperature.
            assert taken[: len(forced[at])] == forced[at]
            self.forced += len(forced[at])
            if req.grammar is not None:
                taken = self._up_to_the_end(taken)
            self.scheduler.commit(req, taken)
        self.passes += 1

    def _up_to_the_end(self, tokens: list[int]) -> list[int]:
        ends = [at for at, token in enumerate(tokens) if token in self.scheduler.ends]
        return tokens[: ends[0] + 1] if ends else tokens


def _inner(grammar: Any) -> Any:
    return getattr(grammar, "grammar", grammar) if hasattr(grammar, "think_end_ids") else grammar


@pytest.mark.parametrize("temperature", [0.0, 0.7, 2.0])
def test_text_is_the_same_with_any_number_of_drafts(
    worker_module: Any, verify_tree: Any, temperature: float
) -> None:
    texts, passes = [], []
    for nodes in (1, 5, 17):
        with SmallScheduler(seed=SEED) as scheduler:
            decoder = Decoder(scheduler, worker_module, verify_tree, nodes)
            asked = [KINDS[i % len(KINDS)] for i in range(8)]
            reqs = [
                scheduler.request(f"r{i}", max_new_tokens=60, **each)
                for i, each in enumerate(asked)
            ]
            running = scheduler.admit(reqs)
            while running := [req for req in running if not req.finished()]:
                decoder.step(running, temperature)
            assert all(req.to_finish is None for req in reqs)
            texts.append([list(req.output_ids)[:60] for req in reqs])
            passes.append(decoder.passes)
            assert (decoder.forced > 0) == (nodes > 1)
    assert texts[0] == texts[1] == texts[2]
    # The free requests take as long as without drafts.
    assert max(passes) <= 60


def test_constrained_requests_take_fewer_passes(worker_module: Any, verify_tree: Any) -> None:
    passes = []
    for nodes in (1, 17):
        with SmallScheduler(seed=SEED) as scheduler:
            decoder = Decoder(scheduler, worker_module, verify_tree, nodes)
            running = scheduler.admit([scheduler.request("r", **KINDS[0])])
            while running := [req for req in running if not req.finished()]:
                decoder.step(running, 0.0)
            passes.append(decoder.passes)
    assert 3 * passes[1] < 2 * passes[0], passes


def test_reasoning_is_not_drafted(worker_module: Any) -> None:
    """Before its end nothing is forced; afterwards it is."""
    with SmallScheduler(seed=SEED, reasoning_parser="qwen3") as scheduler:
        req = scheduler.request("r", require_reasoning=True, **KINDS[1])
        scheduler.admit([req])
        drafts, mask = np.array([7, 9, 9, 9]), tree_of([-1, 0, 0, 0]).reshape(-1)
        kept = worker_module.with_forced([req], drafts.copy(), mask.copy(), 4)
        assert np.array_equal(kept[0], drafts)
        scheduler.commit(req, [tiny_tokenizer().convert_tokens_to_ids(THINK_END)])
        forced = req.grammar.grammar.forced(3)
        assert len(forced) == 3
        tokens, ways = worker_module.with_forced([req], drafts.copy(), mask.copy(), 4)
        assert tokens.tolist() == [7, *forced]
        assert np.array_equal(ways.reshape(4, 4), tree_of([-1, 0, 1, 2]))


def test_other_drafts_go_on_after_the_forced_ones(worker_module: Any) -> None:
    """Random trees: ways that agree with what is forced are kept as long as there is room."""
    rng = random.Random(SEED)

    def ways_of(tokens: list[int], mask: Any) -> set[tuple[int, ...]]:
        return {tuple(tokens[at] for at in np.flatnonzero(line)[1:]) for line in mask}

    kept = 0
    for _ in range(300):
        nodes = rng.randint(2, 10)
        forced = [rng.randint(1, 2) for _ in range(rng.randint(1, nodes - 1))]
        parents, seen = [-1], {}
        tokens = [0]
        while len(tokens) < nodes:
            parent, token = rng.randrange(len(tokens)), rng.randint(1, 12)
            token = rng.choice([token, rng.randint(1, 2)])
            if (parent, token) in seen:
                continue
            seen[parent, token] = len(tokens)
            parents.append(parent)
            tokens.append(token)
        before = ways_of(tokens, tree_of(parents))
        new, mask = worker_module._grafted(np.array(tokens), tree_of(parents), forced)
        after = ways_of(new.tolist(), mask)
        agreeing = {way for way in before if all(a == b for a, b in zip(way, forced, strict=False))}
        longer = {way for way in agreeing if len(way) > len(forced)}
        chain = {tuple(forced[:count]) for count in range(len(forced) + 1)}
        assert len(new) == nodes
        assert chain <= after
        assert after - chain - {(0,)} <= longer
        assert len(after & longer) == min(len(longer), nodes - 1 - len(forced))
        kept += len(after & longer)
    assert kept > 50


def test_another_worker_is_refused(worker_module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert speculation.create_worker(None) is worker_module.ForcedDraftsWorker
    changed = dataclasses.replace(surface.WORKER[0], fingerprints=("other",))
    monkeypatch.setattr(speculation, "WORKER", (changed,))
    with pytest.raises(
        ForcedDraftsError, match=r"NGRAMWorker\._prepare_draft_tokens, which is not"
    ):
        speculation.create_worker(None)


def test_the_arguments_are_those_of_ngram() -> None:
    """As SGLang resolves them for its own algorithm, but for the number of steps of a draft."""
    algorithm = SpeculativeAlgorithm.from_string("ffwd")
    assert (algorithm.is_ngram(), algorithm.has_draft_kv()) == (True, False)
    assert algorithm.supports_overlap
    assert not algorithm.supports_grammar_overlap()
    given = {
        "grammar_backend": "ffwd",
        "page_size": 1,
        "attention_backend": "triton",
        "enable_dp_attention": False,
        "disable_overlap_schedule": False,
        "enable_mixed_chunk": True,
        "speculative_ngram_max_bfs_breadth": 4,
        "speculative_ngram_external_corpus_path": "corpus",
        "speculative_ngram_external_sam_budget": 3,
        "speculative_ngram_external_corpus_max_tokens": 10,
        "speculative_eagle_topk": None,
    }
    choices = itertools.product(["cuda", "cpu"], [None, 7], [None, 9], [None, 2])
    for device, running, drafts, steps in choices:
        fields = {
            **given,
            "device": device,
            "max_running_requests": running,
            "speculative_num_draft_tokens": drafts,
            "speculative_num_steps": steps,
        }
        ours = SimpleNamespace(**fields)
        record_foreign_defaults(ours, "test", algorithm.handle_server_args)
        assert vars(ours) == resolved_for_ngram(fields)


def resolved_for_ngram(fields: dict[str, Any]) -> dict[str, Any]:
    """What SGLang makes of the arguments for its own algorithm."""
    record = SimpleNamespace(**fields)
    with pytest.MonkeyPatch.context() as patch:
        hook = "sglang.srt.arg_groups.speculative_hook"
        patch.setattr(f"{hook}.attn_dp_enabled_of", lambda view: view.enable_dp_attention)
        _handle_ngram(record)
    resolved = dict(fields)
    for _, declared in record._resolved_overrides:
        resolved.update(declared)
    return resolved


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grammar_backend": "xgrammar"}, "add --grammar-backend ffwd"),
        ({"device": "npu"}, "does not run on 'npu'"),
        ({"enable_dp_attention": True}, "does not support --enable-dp-attention"),
        ({"page_size": 16}, "need --page-size 1"),
        ({"speculative_ngram_external_corpus_path": "x"}, "sam-budget from 1 to 7"),
    ],
)
def test_arguments_that_cannot_be(change: dict[str, Any], words: str) -> None:
    fields = {
        "grammar_backend": "ffwd",
        "device": "cuda",
        "enable_dp_attention": False,
        "max_running_requests": 8,
        "page_size": 1,
        "attention_backend": "triton",
        "speculative_num_draft_tokens": 8,
        "speculative_num_steps": 1,
        "speculative_ngram_max_bfs_breadth": 8,
        "speculative_ngram_external_corpus_path": None,
        "speculative_ngram_external_sam_budget": 8,
        "speculative_ngram_external_corpus_max_tokens": 10,
    }
    algorithm = SpeculativeAlgorithm.from_string(plugin.ALGORITHM_NAME)
    with pytest.raises(ForcedDraftsError, match=words):
        algorithm.handle_server_args(SimpleNamespace(**{**fields, **change}))
