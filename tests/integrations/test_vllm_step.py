"""Steps of vLLM's manager, against its own path over requests in Python, a row at a time."""

import json
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")

from slow_request import SlowRequest, row_bits
from transformers import AutoTokenizer
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar
from vllm_models import END, WIDTH, write_model
from vllm_scheduling import engine_config

import ffwd
import ffwd.adapters.vllm
from ffwd.adapters.vllm.grammar import NARROW_VARIABLE, FfwdGrammar
from ffwd.adapters.vllm.requests import GrammarStore, grammar_request

pytestmark = pytest.mark.engine
ffwd.adapters.vllm.register()

SEED = 20261123
SLOTS = 12
SCHEMA = {
    "type": "object",
    "properties": {
        "status_of_the_order": {"enum": ["pending", "shipped"]},
        "name": {"type": "string", "maxLength": 8},
        "number": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["status_of_the_order", "name"],
    "additionalProperties": False,
}
TAG = {
    "type": "structural_tag",
    "structures": [{"begin": "<f>", "schema": {"type": "boolean"}, "end": "</f>"}],
    "triggers": ["<f"],
}
KINDS: list[dict[str, Any]] = [
    {"json": json.dumps(SCHEMA)},
    {"json_object": True},
    {"regex": "a(b!?c)*"},
    {"choice": ["yes", "yet", "no, never"]},
    {"structural_tag": json.dumps(TAG)},
    {"grammar": 'start: "please answer: " ("red" | "blue")'},
]


class SlowGrammar(SlowRequest, StructuredOutputGrammar):  # type: ignore[misc]
    """The slow twin of `FfwdGrammar`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


class Twins:
    """Two managers with the same requests: ffwd's way, and vLLM's with grammars in Python."""

    def __init__(self, folder: Path, drafts: int, seed: int, **structured: Any) -> None:
        self.rng = random.Random(seed)
        self.drafts = drafts
        self.thinks = bool(structured)
        config = engine_config(folder, drafts=drafts, max_seqs=SLOTS, **structured)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.fast, self.slow = (StructuredOutputManager(config) for _ in range(2))
        self.cache = GrammarStore().cache(config.model_config, self.slow.tokenizer)
        self.config = config
        self.requests: dict[str, tuple[Request, Request]] = {}
        self.made = 0

    def begin(self) -> None:
        """A request in both managers."""
        self.made += 1
        kind = self.rng.choice(KINDS)
        stops = self.rng.choice([[], [], self.rng.sample(range(WIDTH), 5)])
        pair = []
        for manager in (self.fast, self.slow):
            params = SamplingParams(
                max_tokens=500,
                stop_token_ids=stops,
                structured_outputs=StructuredOutputsParams(**kind),
            )
            params.update_from_generation_config({}, END)
            params.structured_outputs._backend = "ffwd"
            request = Request(f"r{self.made}", [5, 6, 7], params, None)
            structured = request.structured_output_request
            option, spec = structured.structured_output_key
            asked = params.all_stop_token_ids
            if manager is self.fast:
                structured.grammar = manager.backend.compile_grammar(option, spec, asked)
                assert isinstance(structured.grammar, FfwdGrammar)
            else:
                wanted = grammar_request(option.name, spec, self.config.structured_outputs_config)
                structured.grammar = SlowGrammar(self.cache.get(wanted), asked, narrow=True)
            pair.append(request)
        self.requests[f"r{self.made}"] = (pair[0], pair[1])

    def plan(self, name: str, committed: int) -> list[int]:
        """Tokens that a model could say: mostly right."""
        request = self.requests[name][1]
        grammar = request.structured_output_request.grammar
        thinks = self.thinks and not request.structured_output_request.reasoning_ended
        tokens, taken = [], 0
        for _ in range(self.rng.randint(committed, max(committed, self.drafts))):
            if thinks:
                ends = self.rng.random() < 0.3
                token = self.tokenizer.convert_tokens_to_ids("</think>") if ends else 9
                thinks = not ends
            elif grammar.is_terminated():
                token = self.rng.randrange(WIDTH)
            else:
                token = self.rng.choice(sorted(self.allowed(grammar)))
                taken += grammar.accept_tokens(name, [token])
            tokens.append(token)
        grammar.rollback(taken)
        return tokens

    @staticmethod
    def allowed(grammar: Any) -> set[int]:
        row = np.zeros((1, (WIDTH + 31) // 32), np.int32)
        grammar.fill_bitmask(row, 0)
        return {token for token in row_bits(row[0]) if token < WIDTH}

    def step(self) -> None:
        """Fill and accept, in both ways; every row and every answer is the same."""
        names = self.rng.sample(sorted(self.requests), self.rng.randint(1, len(self.requests)))
        scheduled = {}
        for name in names if self.drafts else ():
            drafts = self.plan(name, 0)
            if drafts and self.rng.random() < 0.2:
                # What the grammar refuses, and what the scheduler puts where drafts are unknown.
                drafts[self.rng.randrange(len(drafts))] = self.rng.choice([-1, 3])
            valid = [m.validate_tokens(r, drafts) for m, r in self.both(name)]
            assert valid[0] == valid[1]
            if self.rng.random() < 0.7:
                drafts = valid[0]
            if drafts:
                scheduled[name] = drafts
        fast, slow = self.masks(names, scheduled)
        for name in names:
            tokens = self.plan(name, 1)
            if self.rng.random() < 0.05:
                tokens[-1] = self.rng.randrange(WIDTH)
            answers = [m.accept_tokens(r, tokens) for m, r in self.both(name)]
            assert answers[0] == answers[1]
            for request in self.requests[name]:
                request.append_output_token_ids(tokens)
            ends = [r.structured_output_request.reasoning_ended for r in self.requests[name]]
            assert ends[0] == ends[1]
        assert np.array_equal(fast, slow)

    def masks(self, names: list[str], scheduled: dict[str, list[int]]) -> tuple[Any, Any]:
        """The rows of a step that vLLM's way has written."""
        both = []
        for at, manager in enumerate((self.fast, self.slow)):
            requests = {name: pair[at] for name, pair in self.requests.items()}
            if at:
                if manager._grammar_bitmask is None:
                    rows = SLOTS * (1 + self.drafts)
                    manager._grammar_bitmask = manager.backend.allocate_token_bitmask(rows)
                # To see which rows are written: a mask has none of these bits.
                manager._grammar_bitmask.fill_(UNWRITTEN)
            fill = StructuredOutputManager.grammar_bitmask
            fill = fill.__wrapped__ if at else fill
            both.append(fill(manager, requests, names, scheduled))
        fast, slow = both
        assert fast.shape == slow.shape
        assert fast.dtype == slow.dtype
        written = ~(slow == UNWRITTEN).all(axis=1)
        assert written.sum() == sum(1 + len(scheduled.get(name, ())) for name in names)
        return fast[written], slow[written]

    def both(self, name: str) -> list[tuple[Any, Request]]:
        fast, slow = self.requests[name]
        return [(self.fast, fast), (self.slow, slow)]


# In no mask: the tokens of three words are never allowed and refused by turns.
UNWRITTEN = 0x55555555


@pytest.mark.parametrize("drafts", [0, 4])
@pytest.mark.parametrize("thinks", [False, True])
def test_steps_are_what_vllm_would_do(folder: Path, drafts: int, thinks: bool) -> None:
    """With drafts, refused ones, stop tokens, reasoning, and requests that come and go."""
    structured = {"reasoning_parser": "deepseek_r1"} if thinks else {}
    twins = Twins(folder, drafts, SEED, **structured)
    for _ in range(SLOTS):
        twins.begin()
    ended = 0
    for _ in range(150):
        twins.step()
        for name in list(twins.requests):
            grammars = [r.structured_output_request.grammar for r in twins.requests[name]]
            assert grammars[0].is_terminated() == grammars[1].is_terminated()
            chance = twins.rng.random()
            if chance < 0.02:
                for grammar in grammars:
                    grammar.reset()
            elif chance < (0.5 if grammars[0].is_terminated() else 0.04):
                ended += 1
                del twins.requests[name]
                twins.begin()
    assert ended > 30


def test_a_batch_with_another_grammar_takes_vllms_path(folder: Path) -> None:
    """And what the rows held is forgotten."""
    twins = Twins(folder, 0, SEED)
    for _ in range(4):
        twins.begin()
    names = list(twins.requests)
    first = twins.masks(names, {})[0].copy()
    fast = twins.requests[names[0]][0].structured_output_request
    ours, fast.grammar = fast.grammar, twins.requests[names[1]][1].structured_output_request.grammar
    other, _ = twins.masks(names, {})
    assert np.array_equal(other[0], first[1])
    assert np.array_equal(other[1:], first[1:])
    fast.grammar = ours
    assert np.array_equal(twins.masks(names, {})[0], first)


def test_a_request_over_a_limit_ends_alone(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine goes on, and the log says what the limit was."""
    twins = Twins(folder, 0, SEED)
    for _ in range(3):
        twins.begin()
    names = list(twins.requests)
    request = twins.requests[names[1]][0]
    vocabulary = twins.cache.vocabulary
    small = ffwd.compile(ffwd.regex("(a|b|c|d)*x"), vocabulary, limits=ffwd.Limits(call_steps=1))
    request.structured_output_request.grammar = FfwdGrammar(small)
    # vLLM's loggers hand nothing on.
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    fast = StructuredOutputManager.grammar_bitmask(
        twins.fast, {name: pair[0] for name, pair in twins.requests.items()}, names, {}
    )
    assert len(row_bits(fast[1])) == 1
    assert f"request {names[1]} is ended" in caplog.text
    assert "call_steps" in caplog.text
    assert not twins.fast.accept_tokens(request, [min(row_bits(fast[1]))])


def test_narrow_masks_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twins = Twins(folder, 0, SEED)
    option, spec = Request(
        "r", [5], SamplingParams(structured_outputs=StructuredOutputsParams(**KINDS[0])), None
    ).structured_output_request.structured_output_key
    made = []
    for narrow in ("1", "0"):
        monkeypatch.setenv(NARROW_VARIABLE, narrow)
        backend = StructuredOutputManager(twins.config).backend
        made.append(backend.compile_grammar(option, spec, {END}))
    fewer = 0
    while not made[0].is_terminated():
        narrow, plain = map(Twins.allowed, made)
        assert narrow <= plain
        if narrow < plain:
            assert len(narrow) == 1
            fewer += 1
        for grammar in made:
            assert grammar.accept_tokens("r", [max(narrow)])
    assert fewer > 0
    monkeypatch.setenv(NARROW_VARIABLE, "no")
    with pytest.raises(ffwd.FfwdError, match=f"{NARROW_VARIABLE} must be 0 or 1, not 'no'"):
        StructuredOutputManager(twins.config)
