"""The stub of the native module and what the package makes public agree.

That the stub and the compiled module agree is checked by `make stubs`.
"""

import ast
from pathlib import Path

import ffwd
import ffwd.engine
import ffwd.grammar
import ffwd.streaming
import ffwd.tokenizer
from ffwd import _native

STUB = Path(ffwd.__file__).parent / "_native.pyi"
# What `ffwd.compile`, `ffwd.fidelity_report`, `ffwd.apply_token_bitmask_inplace`, `Tokenizer` and
# `ffwd.metrics` call. Nobody needs them by name.
INTERNAL = {"compile_json_schema", "compile_regex", "compile_choice", "json_schema_fidelity"}
INTERNAL |= {"mask_logits", "encode_batch", "encode_parts", "encode_with_offsets"}
INTERNAL |= {"observe_streams", "GrammarBuilder", "compile_grammar"}
INTERNAL |= {"compile_language", "text_chunks", "CompileMeter", "survey_tokens"}
# What the tests ask: the limits of the core, and calls that end at a given place.
INTERNAL |= {"default_limits", "inject_allocation_fault", "inject_fault"}
# What `ffwd.tokenizer` makes public, and what `ffwd.tokenizer.Bpe` is made of.
OF_TOKENIZER = {"AppendEncoder", "IntervalCounter", "PrependEncoder"}
UNDER_BPE = {"Bpe", "BpeModel", "ModelFile", "read_ranks"}
# What `ffwd.streaming` makes public, and what `ffwd.streaming.Sequence` is made of.
OF_STREAMING = {"Decoder", "DecodeStream", "StopSequenceDecoder"}
OF_STREAMING |= {"Text", "Held", "Stopped", "StoppedWithText"}
OF_STREAMING |= {"StopSequenceError", "StreamInUseError"}
UNDER_SEQUENCE = {"TokenSequence"}
# What `ffwd.engine` makes public.
OF_ENGINE = {"EngineRequest", "StepRows", "fill_rows", "fill_trees", "forced_table"}
ELSEWHERE = INTERNAL | OF_TOKENIZER | UNDER_BPE | OF_STREAMING | UNDER_SEQUENCE | OF_ENGINE


def stub_names() -> set[str]:
    """The public definitions of the stub."""
    return {
        node.name
        for node in ast.parse(STUB.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }


def test_every_native_name_is_public() -> None:
    """A class that cannot be named cannot be caught or annotated."""
    names = stub_names()
    assert names > ELSEWHERE
    for name in names - ELSEWHERE:
        assert getattr(ffwd, name) is getattr(_native, name)
    for name in OF_TOKENIZER:
        assert getattr(ffwd.tokenizer, name) is getattr(_native, name)
    for name in OF_STREAMING:
        assert getattr(ffwd.streaming, name) is getattr(_native, name)
    for name in OF_ENGINE:
        assert getattr(ffwd.engine, name) is getattr(_native, name)
    assert issubclass(ffwd.tokenizer.Bpe, _native.Bpe)
    assert issubclass(ffwd.streaming.Sequence, _native.TokenSequence)
    for name in ELSEWHERE:
        assert not hasattr(ffwd, name)


def test_every_grammar_name_is_public() -> None:
    """`ffwd.grammar` holds them, `ffwd` repeats the functions that make them."""
    exported = set(ffwd.grammar.__all__)
    assert {"json_schema", "regex", "choice", "Grammar"} <= exported
    for name in exported:
        if name.islower() or name in {"Grammar", "GrammarLike", "JsonSchema", "Regex", "Choice"}:
            assert getattr(ffwd, name) is getattr(ffwd.grammar, name)


def test_public_classes_say_where_they_live() -> None:
    """So that they can be pickled by name, where they can be at all, and tracebacks help."""
    for name in stub_names():
        value = getattr(_native, name)
        if isinstance(value, type):
            places = {"ffwd", "ffwd._native", "ffwd.engine", "ffwd.streaming"}
            assert value.__module__ in places, value.__module__
