"""LMDeploy's own manager and helper of drafts, without its engine, which needs CUDA.

Importing the whole package needs its engine, so its folders are packages here without their
`__init__`; the code of guided decoding is the package's own.
"""

import asyncio
import importlib.machinery
import json
import logging
import sys
import types
from pathlib import Path

import pytest
import torch

_SPEC = importlib.machinery.PathFinder.find_spec("lmdeploy")
if _SPEC is None:
    pytest.skip("needs the environment lmdeploy", allow_module_level=True)

_ROOT = _SPEC.submodule_search_locations[0]
for _name in ("", ".pytorch", ".pytorch.engine", ".pytorch.spec_decode"):
    _module = types.ModuleType(f"lmdeploy{_name}")
    _module.__path__ = [f"{_ROOT}{_name.replace('.', '/')}"]
    sys.modules[f"lmdeploy{_name}"] = _module

from hostcases import CASES, NAMES, write_host_model
from lmdeploy.pytorch.engine.guided_process import GuidedDecodingManager
from lmdeploy.pytorch.spec_decode.guided_spec_helper import GuidedSpecHelper
from transformers import AutoTokenizer

import ffwd
from ffwd.adapters.lmdeploy import (
    GrammarDecodingManager,
    check_response_format,
    register,
)

pytestmark = pytest.mark.engine

WIDTH = 512
STEPS = 400
# LMDeploy has no grammars in Lark; a structural tag may hold one.
GUIDED = [(case, name) for case, name in zip(CASES, NAMES, strict=True) if case.kind != "lark"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return AutoTokenizer.from_pretrained(write_host_model(tmp_path_factory.mktemp("model")))


@pytest.fixture
def manager(tokenizer):
    return GrammarDecodingManager(tokenizer, WIDTH)


def format_of(case):
    if case.kind == "json":
        return {"type": "json_schema", "json_schema": {"name": "x", "schema": case.source}}
    return {"type": "regex_schema", "regex_schema": case.source}


def step(manager, processors, logits):
    """What `FusedLogitsProcessor` does: fill, apply, choose, accept."""
    bits = manager.allocate_batched_bitmap(len(logits))
    bits.fill_(-1)
    for index, processor in processors.items():
        if not manager.is_terminated(processor):
            manager.fill_bitmap(processor, bits, index)
    manager.apply_batched_bitmap(logits, bits)
    tokens = logits.argmax(-1).tolist()
    for index, processor in processors.items():
        if not manager.is_terminated(processor):
            manager.accept_token(processor, tokens[index])
    return tokens


@pytest.mark.parametrize("case", [case for case, _ in GUIDED], ids=[name for _, name in GUIDED])
def test_outputs_are_valid(manager, tokenizer, case):
    """In a batch beside a request without a format; those that end are complete."""
    generator = torch.Generator().manual_seed(1)
    contexts = [{"session_id": session, "seq_id": 0} for session in range(4)]
    formats = (format_of(case), None, {"type": "text"}, format_of(case))
    outputs = [[] for _ in contexts]
    for _ in range(STEPS):
        processors = manager.get_processors(contexts, formats)
        assert set(processors) == {0, 3}
        logits = torch.randn(4, WIDTH, generator=generator)
        logits[:, tokenizer.eos_token_id] += 2
        free = logits[1:3].clone()
        tokens = step(manager, processors, logits)
        assert torch.equal(logits[1:3], free)
        for index, processor in processors.items():
            if tokens[index] != tokenizer.eos_token_id and not manager.is_terminated(processor):
                outputs[index].append(tokens[index])
        if all(map(manager.is_terminated, processors.values())):
            break
    else:
        pytest.fail("no end")
    for index in (0, 3):
        case.check(tokenizer.decode(outputs[index]))
    manager.remove_processor(0)
    assert set(manager.processors) == {3}
    manager.clear()
    assert not manager.processors


def test_drafts(manager, tokenizer):
    """LMDeploy's own helper: masks at each position, and originals that do not move."""
    helper = GuidedSpecHelper(manager)
    grammar = {"type": "regex_schema", "regex_schema": "(red|green|blue)( apple){2}"}
    processors = helper.get_processors([{"session_id": 1, "seq_id": 0}], (grammar,))
    ids = tokenizer.encode("red apple", add_special_tokens=False)
    for drafts, allowed in ((ids, len(ids) + 1), ([ids[0], 40, *ids[1:]], 2)):
        scores = torch.zeros(1, len(drafts) + 1, WIDTH)
        asyncio.run(
            helper.apply_serial_bitmask(scores, processors, torch.tensor([drafts]), len(drafts))
        )
        follower = manager.compile(grammar).matcher()
        for position in range(allowed):
            found = torch.nonzero(scores[0, position] == 0).flatten().tolist()
            assert found == follower.allowed_token_ids()
            if position < len(drafts):
                follower.accept_token(drafts[position])
        assert processors[0].matcher.num_tokens == 0
    asyncio.run(
        helper.accept_rejection_sampled_tokens(
            processors,
            torch.tensor([0]),
            torch.tensor([ids[:-1]]),
            torch.tensor(ids[-1:]),
            len(ids) - 1,
        )
    )
    assert processors[0].matcher.tokens == ids


def test_errors_end_one_request(manager, tokenizer, caplog):
    end = tokenizer.eos_token_id
    bad = {"type": "json_schema", "json_schema": {"schema": {"enum": []}}}
    with caplog.at_level(logging.ERROR):
        processors = {0: manager.get_processor(1, 0, bad)}
    assert "session 1 has no output" in caplog.text
    assert step(manager, processors, torch.randn(1, WIDTH)) == [end]
    assert manager.is_terminated(processors[0])

    good = manager.get_processor(2, 0, {"type": "regex_schema", "regex_schema": "ab"})
    with caplog.at_level(logging.ERROR):
        manager.accept_token(good, 40)
    assert "refuses token 40" in caplog.text
    assert not manager.is_terminated(good)
    assert step(manager, {0: good}, torch.randn(1, WIDTH)) == [end]


def test_requests_are_checked_before(manager):
    for wrong, error in (
        ({"type": "json_schema", "json_schema": {"schema": {"enum": []}}}, ffwd.SchemaError),
        ({"type": "regex_schema", "regex_schema": "(a"}, ffwd.GrammarError),
        ({"type": "json_schema"}, ValueError),
        ({"type": "yaml"}, ValueError),
    ):
        with pytest.raises(error):
            check_response_format(wrong)
        with pytest.raises(error):
            manager.compile(wrong)
    check_response_format({"type": "text"})
    for right in (
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": json.dumps({"type": "string"})},
        {"type": "structural_tag", "format": {"type": "const_string", "value": "red"}},
    ):
        check_response_format(right)
        assert manager.compile(right) is manager.compile(right)


def test_an_unsupported_tokenizer_fails_with_the_first_request():
    class Unknown:
        def __len__(self):
            return 9

    manager = GrammarDecodingManager(Unknown(), 9)
    assert manager.vocabulary is None
    with pytest.raises(ffwd.VocabularyError, match="Unknown"):
        manager.get_processor(1, 0, {"type": "json_object"})


def test_registration(monkeypatch):
    """Of the names that the engine and its front end look for, in modules that stand for them."""
    agent = types.ModuleType("lmdeploy.pytorch.engine.model_agent.agent")
    front = types.ModuleType("lmdeploy.serve.core.async_engine")
    for module in (agent, front):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for parent in ("lmdeploy.pytorch.engine.model_agent", "lmdeploy.serve", "lmdeploy.serve.core"):
        monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
    with pytest.raises(ImportError, match="another version"):
        register()
    agent.GuidedDecodingManager, front.ensure_response_format_compilable = None, None
    register()
    assert agent.GuidedDecodingManager is GrammarDecodingManager
    assert issubclass(GrammarDecodingManager, GuidedDecodingManager)
    assert front.ensure_response_format_compilable is check_response_format
    for name in ("pytorch/engine/model_agent/agent.py", "serve/core/async_engine.py"):
        source = Path(_ROOT, name).read_text(encoding="utf-8")
        assert "import GuidedDecodingManager" in source or "ensure_response_format" in source
