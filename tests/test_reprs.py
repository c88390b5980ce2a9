"""Objects of public classes say what they are: no `<... object at 0x...>`."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import ffwd
import ffwd.adapters
from ffwd import _native
from ffwd.engine import EngineRequest, StepRows
from ffwd.streaming import DecodeStream, Sequence, StopSequenceDecoder
from ffwd.view import Recorder

# They need an engine's own environment.
ENGINES = {"exllamav3", "genlm_control", "llama_cpp", "lmdeploy", "mlx_lm", "onnxruntime_genai"}
ENGINES |= {"outlines", "sglang", "vllm"}


def public_modules() -> Iterator[str]:
    """The package, its subpackages, and the adapters' that need no engine."""
    yield "ffwd"
    yield "ffwd._native"
    for package in (ffwd, ffwd.adapters):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            last = found.name.rpartition(".")[2]
            if not last.startswith("_") and last not in ENGINES | {"cli"}:
                yield found.name


@pytest.mark.parametrize("name", list(public_modules()))
def test_public_classes_have_a_repr(name: str) -> None:
    """Also those of the core; protocols have no objects, and errors show their message."""
    for of, found in vars(importlib.import_module(name)).items():
        if of.startswith("_") or not isinstance(found, type):
            continue
        if found.__module__.partition(".")[0] == "ffwd" and not getattr(found, "_is_protocol", 0):
            assert found.__repr__ is not object.__repr__, f"{name}.{of}"


def test_reprs_of_the_core() -> None:
    """They have the arguments that tell one object from another."""
    tokenizer = ffwd.tokenizer.mock()
    vocabulary = tokenizer.vocabulary()
    grammars: dict[str, ffwd.Grammar] = {
        "json_schema": ffwd.json_schema({"type": "object"}),
        "regular_language": ffwd.regex("[0-9]+"),
        "rules": ffwd.lark('start: "a" start?'),
    }
    for kind, grammar in grammars.items():
        compiled = ffwd.compile(grammar, vocabulary)
        assert repr(compiled) == f"CompiledGrammar({kind}, vocab_size=291)"
    matcher = compiled.matcher()
    matcher.accept_token(ord("a"))
    decoder = tokenizer.decoder
    stops = StopSequenceDecoder(decoder, stop_strings=["a"])
    stops.step(ord("a"))
    stream = DecodeStream(decoder)
    stream.step(0xE2)
    builder = _native.GrammarBuilder()
    builder.text("a")
    reprs = {
        repr(matcher): "Matcher(num_tokens=1, is_accepting=True, is_terminated=False)",
        repr(stops): "StopSequenceDecoder(num_tokens=1, stopped=True)",
        repr(stream): "DecodeStream(pending_bytes=1)",
        repr(builder): "GrammarBuilder(nodes=1)",
        repr(StepRows(ffwd.allocate_bitmask(2, 64))): "StepRows(rows=2, words=2)",
        repr(EngineRequest(compiled)): "EngineRequest(num_tokens=0, is_terminated=False)",
        repr(_native.CompileMeter()): "CompileMeter(steps=0)",
        repr(Recorder(vocabulary, title="a")): "Recorder(title='a', num_steps=0)",
        repr(Sequence(decoder, prompt_ids=[65])): "TokenSequence(1 tokens of a prompt, 0 after it)",
    }
    assert list(reprs) == list(reprs.values())
