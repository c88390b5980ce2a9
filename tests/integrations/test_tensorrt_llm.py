"""Matchers for TensorRT-LLM in the steps of its guided decoder, without the package.

PyPI has only a stub of it. The names of its modules and of what it passes are those of its sources;
`test_registration` has modules that stand for them.
"""

import abc
import enum
import json
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hostcases import CASES, NAMES, write_host_model
from transformers import AutoTokenizer

import ffwd
from ffwd.adapters.tensorrt_llm import GuidedMatcher, GuidedMatcherFactory, register

WIDTH = 512
WORDS = WIDTH // 32
STEPS = 400


class GuideType(enum.Enum):
    JSON, JSON_SCHEMA, REGEX, EBNF_GRAMMAR, STRUCTURAL_TAG, OTHER = range(6)


@dataclass
class Params:
    """The fields of a request that the factory reads."""

    guide_type: GuideType
    guide: str | None = None


@dataclass
class Config:
    """The fields of the configuration that the factory reads."""

    tokenizer_str: str | None
    stop_token_ids: list[int] | None = None


TYPES = {"json": "JSON_SCHEMA", "regex": "REGEX", "lark": "EBNF_GRAMMAR"}


def params_of(case):
    source = json.dumps(case.source) if case.kind == "json" else case.source
    return Params(GuideType[TYPES[case.kind]], source)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_host_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def factory(folder, tokenizer):
    text = Path(folder, "tokenizer.json").read_text(encoding="utf-8")
    return GuidedMatcherFactory(Config(text, [tokenizer.eos_token_id]), WIDTH, 3)


def allowed(bits, row):
    return [token for token in range(WIDTH) if bits[row, token // 32] >> (token % 32) & 1]


def fill(matcher, bits, drafts):
    """Fill a row for a token and for each draft that is taken; return how many of these are.

    It does what `GuidedDecoder._build` does after the last new token.
    """
    matcher.fill_next_token_bitmask(bits, 0)
    for taken, token in enumerate(drafts):
        if not matcher.accept_token(token):
            return taken
        if matcher.is_terminated():
            return taken + 1
        matcher.fill_next_token_bitmask(bits, taken + 1)
    return len(drafts)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_outputs_are_valid(factory, tokenizer, case):
    """Random drafts are taken and rolled back between the tokens of a random model."""
    generator = torch.Generator().manual_seed(1)
    matcher = factory.create(params_of(case))
    bits = torch.empty(4, WORDS, dtype=torch.int32)
    output, ends = [], factory.vocabulary.eos_token_ids
    drafted = 0
    for _ in range(STEPS):
        # The first draft is allowed, the others are what they are.
        fill(matcher, bits, [])
        first = allowed(bits, 0)
        drafts = [first[0], *torch.randint(WIDTH, (2,), generator=generator).tolist()]
        taken = fill(matcher, bits, drafts)
        drafted += taken
        matcher.rollback(taken)
        assert allowed(bits, 0) == first
        logits = torch.randn(WIDTH, generator=generator)
        logits[ends] += 2
        logits[[at for at in range(WIDTH) if at not in set(first)]] = -torch.inf
        output.append(int(logits.argmax()))
        assert matcher.accept_token(output[-1])
        if matcher.is_terminated():
            break
    else:
        pytest.fail("no end")
    assert drafted >= len(output)
    case.check(tokenizer.decode(output[:-1]))


def test_refused_tokens_change_nothing(factory, tokenizer):
    matcher = factory.create(Params(GuideType.REGEX, "red"))
    for token in (-1, WIDTH, WIDTH * 9, tokenizer.eos_token_id):
        assert not matcher.accept_token(token)
    for token in [*tokenizer.encode("red", add_special_tokens=False), tokenizer.eos_token_id]:
        assert matcher.accept_token(token)
    assert matcher.is_terminated()
    assert not matcher.accept_token(tokenizer.eos_token_id)
    matcher.rollback(1)
    assert not matcher.is_terminated()
    with pytest.raises(IndexError, match="cannot roll back"):
        matcher.rollback(99)


def test_types_of_guides(factory):
    tag = '{"type": "structural_tag", "format": {"type": "const_string", "value": "red"}}'
    for params in (Params(GuideType.JSON), Params(GuideType.STRUCTURAL_TAG, tag)):
        one, other = factory.create(params), factory.create(params)
        assert one.matcher.grammar is other.matcher.grammar
    with pytest.raises(ffwd.FfwdError, match="OTHER"):
        factory.create(Params(GuideType.OTHER))
    with pytest.raises(ffwd.SchemaError):
        factory.create(Params(GuideType.JSON_SCHEMA, '{"enum": []}'))


def test_a_tokenizer_is_needed():
    with pytest.raises(ffwd.VocabularyError, match="tokenizer_str"):
        GuidedMatcherFactory(Config(None), WIDTH)


def test_registration(monkeypatch):
    with pytest.raises(ImportError):
        register()
    package = "tensorrt_llm._torch.pyexecutor"
    modules = {}
    for name in ("tensorrt_llm", "tensorrt_llm._torch", package, f"{package}.guided_decoder",
                 f"{package}.grammar_matcher"):  # fmt: skip
        modules[name] = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[name])
    decoder = modules[f"{package}.guided_decoder"]
    with pytest.raises(ImportError, match="another version"):
        register()
    decoder.XGrammarMatcherFactory = decoder.LLGuidanceMatcherFactory = None
    matchers = modules[f"{package}.grammar_matcher"]
    for name in ("GrammarMatcher", "GrammarMatcherFactory"):
        setattr(matchers, name, abc.ABCMeta(name, (), {}))
    register()
    assert (
        decoder.XGrammarMatcherFactory is decoder.LLGuidanceMatcherFactory is GuidedMatcherFactory
    )
    assert issubclass(GuidedMatcher, matchers.GrammarMatcher)
    assert issubclass(GuidedMatcherFactory, matchers.GrammarMatcherFactory)
