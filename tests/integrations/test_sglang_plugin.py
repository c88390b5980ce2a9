"""How SGLang finds the backend, and what it is told where it cannot be used."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained.base_grammar_backend import (
    GRAMMAR_BACKEND_REGISTRY,
    create_grammar_backend,
)
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, Function, Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.runtime_context import get_context
from sglangharness import LOGITS_WIDTH, SmallScheduler, end_id, tiny_tokenizer

import ffwd
from ffwd.adapters import sglang as plugin
from ffwd.adapters.sglang import diagnosis
from ffwd.adapters.sglang.backend import FfwdGrammarBackend
from ffwd.adapters.sglang.diagnosis import diagnose
from ffwd.adapters.sglang.grammar import FfwdGrammar
from ffwd.adapters.shared.warming import WarmingError


@pytest.fixture
def registered() -> Any:
    plugin.register()
    yield
    plugin.register()


def test_the_entry_point_may_be_loaded_any_number_of_times(registered: None) -> None:
    for _ in range(3):
        plugin.register()
    assert GRAMMAR_BACKEND_CHOICES.count("ffwd") == 1
    assert GRAMMAR_BACKEND_REGISTRY["ffwd"] is plugin.create_grammar_backend
    assert {"xgrammar", "llguidance", "outlines", "none"} < set(GRAMMAR_BACKEND_CHOICES)


@pytest.mark.parametrize("version", ["0.1.0", "9.0.0", f"{plugin.SUPPORTED_VERSION}1", None])
def test_other_versions_are_refused_when_the_backend_is_named(
    version: str | None,
    registered: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line in the log, and SGLang goes on; the name is answered with what would work."""
    monkeypatch.setattr(plugin, "installed_version", lambda: version)
    with caplog.at_level(logging.WARNING):
        plugin.register()
    assert f"install sglang=={plugin.SUPPORTED_VERSION}" in caplog.text
    with (
        get_context().override_server_args(grammar_backend="ffwd", device="cpu") as server_args,
        pytest.raises(plugin.UnsupportedSglangError, match="install sglang==") as caught,
    ):
        create_grammar_backend(server_args, tiny_tokenizer(), LOGITS_WIDTH, {end_id()})
    assert caught.value.version == version
    # Other backends are as they were.
    with get_context().override_server_args(grammar_backend="none", device="cpu") as server_args:
        assert create_grammar_backend(server_args, tiny_tokenizer(), LOGITS_WIDTH) is None


@pytest.mark.parametrize("suffix", ["", ".post1", "+cpu"])
def test_supported_versions(suffix: str) -> None:
    assert plugin.is_supported(plugin.SUPPORTED_VERSION + suffix)


def test_a_version_without_the_hooks_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "_CHOICES", ("sglang.srt.nowhere", "sglang.srt.plugins"))
    with caplog.at_level(logging.WARNING):
        plugin.register()
    assert "has no grammar backend 'ffwd'" in caplog.text


def test_without_sglang_the_module_imports() -> None:
    """The entry point's module itself needs nothing of SGLang, and loads nothing of it."""
    code = (
        "import sys; sys.modules['sglang'] = None; import ffwd.adapters.sglang as p; p.register();"
        "assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "has no grammar backend 'ffwd'" in done.stderr


def test_a_tokenizer_that_cannot_be_read_is_named() -> None:
    with (
        get_context().override_server_args(grammar_backend="ffwd", device="cpu") as server_args,
        pytest.raises(ffwd.VocabularyError, match=r"cannot read .*types\.SimpleNamespace"),
    ):
        create_grammar_backend(server_args, SimpleNamespace(eos_token_id=1), LOGITS_WIDTH, {1})


def test_options_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    spaced, tight = '{"a": [1, 2]}', '{"a":[1,2]}'
    wide = '{"a":   [1,2]}'

    def accepts(scheduler: SmallScheduler, text: str) -> bool:
        grammar = scheduler.backend.dispatch_json('{"type": "object"}')
        try:
            for token in tiny_tokenizer().encode(text):
                grammar.accept_token(token)
        except ValueError:
            return False
        return True

    for options, expected in [
        ({}, (True, True, False)),
        ({"constrained_json_max_whitespace_cnt": 3}, (True, True, True)),
        ({"constrained_json_disable_any_whitespace": True}, (True, False, False)),
        ({"constrained_json_max_whitespace_cnt": 2}, (True, True, False)),
        ({"constrained_json_max_whitespace_cnt": 0}, (False, True, False)),
    ]:
        with SmallScheduler(**options) as scheduler:
            texts = (spaced, tight, wide)
            assert tuple(accepts(scheduler, text) for text in texts) == expected, options
    with pytest.raises(ValueError, match="max_whitespace"):
        SmallScheduler(constrained_json_max_whitespace_cnt=-1)
    monkeypatch.setenv("FFWD_CACHE_BYTES", "much")
    with pytest.raises(ValueError, match="FFWD_CACHE_BYTES"):
        SmallScheduler()


def test_named_grammars_are_those_of_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's request, read by SGLang, finds its grammar with its first mask."""
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"]}
    formats = [
        {"type": "json_schema", "json_schema": {"name": "p", "schema": schema}},
        {"type": "json_object"},
    ]
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    lines: list[dict[str, Any]] = [{"response_format": each} for each in formats]
    lines += [{"structured_outputs": {"structural_tag": json.dumps(tag)}}]
    lines += [{"structured_outputs": {"regex": "[a-z]+"}}]
    warm = tmp_path / "warm.jsonl"
    warm.write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setenv("FFWD_WARM", str(warm))
    with SmallScheduler() as scheduler:
        scheduler.backend.warming.join(600)
        compiled = scheduler.backend._compiled
        misses = compiled.stats().misses
        assert misses == len(lines)
        asked = [
            ChatCompletionRequest(
                model="m", messages=[{"role": "user", "content": "a"}], response_format=each
            ).to_sampling_params([], {})["json_schema"]
            for each in formats
        ]
        made = [scheduler.backend.dispatch_json(text) for text in asked]
        made += [scheduler.backend.dispatch_structural_tag(json.dumps(tag))]
        made += [scheduler.backend.dispatch_regex("[a-z]+")]
        assert all(isinstance(each, FfwdGrammar) for each in made)
        assert compiled.stats().misses == misses
    for line in ("[]", '{"structured_outputs": {"choice": ["a"]}}'):
        warm.write_text(line)
        with pytest.raises(WarmingError, match="line 1"):
            SmallScheduler()


def test_the_doctor_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
    assert {finding.status for finding in diagnose(tiny_tokenizer())} == {"ok"}
    monkeypatch.setenv("SGLANG_PLUGINS", "other")
    assert {finding.topic for finding in diagnose() if finding.status == "bad"} == {"plugin"}
    monkeypatch.delenv("SGLANG_PLUGINS")
    monkeypatch.setattr(diagnosis, "installed_version", lambda: "0.1.0")
    (old,) = (finding for finding in diagnose() if finding.status == "bad")
    assert old.advice == f"install sglang=={plugin.SUPPORTED_VERSION}"


WEATHER = Tool(
    function=Function(
        name="get_weather",
        description="",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
        strict=True,
    )
)
CLOCK = Tool(function=Function(name="clock", description="", parameters=None, strict=True))
# Their structural tags name control tokens of their own models by number or text, or need these
# models' tokenizers.
OTHER_VOCABULARY = {"inkling"}


@pytest.fixture(scope="module")
def backend() -> FfwdGrammarBackend:
    vocabulary = ffwd.tokenizer.from_huggingface(
        tiny_tokenizer(), vocab_size=LOGITS_WIDTH, eos_token_ids=[end_id()]
    )
    return FfwdGrammarBackend(vocabulary)


@pytest.mark.parametrize("name", sorted(FunctionCallParser.ToolCallParserEnum))
@pytest.mark.parametrize("tool_choice", ["auto", "required"])
def test_what_tool_parsers_ask_for(
    backend: FfwdGrammarBackend, name: str, tool_choice: str
) -> None:
    """Strict tools, whatever model the parser is for: its constraint is compiled."""
    try:
        parser = FunctionCallParser([WEATHER, CLOCK], name, tokenizer=tiny_tokenizer())
        constraint = parser.get_structure_constraint(tool_choice)
    except (ImportError, TypeError, ValueError, AttributeError) as error:
        pytest.skip(f"the parser itself needs more: {error}")
    if constraint is None:
        pytest.skip("the parser constrains nothing here")
    kind, value = constraint
    if hasattr(value, "model_dump"):
        value = json.dumps(value.model_dump(by_alias=True))
    if isinstance(value, dict):
        value = json.dumps(value)
    kind = {"json_schema": "json", "full_assistant_ebnf": "ebnf"}.get(kind, kind)
    grammar = getattr(backend, f"dispatch_{kind}")(value)
    assert not hasattr(grammar, "error_message"), grammar.error_message
