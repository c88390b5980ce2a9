"""ffwd as vLLM's backend: how it is found, what it refuses, tool calls, reasoning, stop tokens."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")

import vllm
from prometheus_client import REGISTRY
from pydantic import ValidationError
from transformers import AutoTokenizer
from vllm.config import StructuredOutputsConfig, VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.entrypoints.openai.chat_completion.protocol import (
    ChatCompletionRequest,
    ChatCompletionToolsParam,
)
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams
from vllm.tool_parsers.structural_tag_registry import (
    SUPPORTED_STRUCTURAL_TAG_MODELS,
    get_model_structural_tag,
)
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputOptions
from vllm.v1.structured_output.request import get_structured_output_key
from vllm_models import END, SECOND_END, WIDTH, write_model
from vllm_processes import in_new_process
from vllm_scheduling import FollowingModel, Outcome, SchedulerRun, engine_config

import ffwd.adapters.vllm
from ffwd import VocabularyError
from ffwd.adapters.shared.diagnosis import Finding
from ffwd.adapters.shared.surface import fingerprint
from ffwd.adapters.shared.warming import WarmingError
from ffwd.adapters.vllm import SUPPORTED_VERSIONS, minor_version, step, surface
from ffwd.adapters.vllm.diagnosis import diagnose
from ffwd.adapters.vllm.requests import CACHE_VARIABLE, GrammarStore, grammar_request

pytestmark = pytest.mark.engine
ffwd.adapters.vllm.register()

NEWEST = "{}.{}".format(*SUPPORTED_VERSIONS[-1])
NEXT = f"{SUPPORTED_VERSIONS[-1][0]}.{SUPPORTED_VERSIONS[-1][1] + 1}"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


def said(
    folder: Path,
    tokenizer: Any,
    wanted: str,
    structured: dict[str, Any],
    *,
    drafts: int = 0,
    config: dict[str, Any] | None = None,
    **sampling: Any,
) -> tuple[str, Outcome]:
    """What becomes of a text that a model wants to say."""
    tokens = tokenizer.encode(wanted, add_special_tokens=False)
    model = FollowingModel(WIDTH, END, tokens)
    # Drafts of what the model wants, whatever the grammar says of it.
    drafter = (
        (lambda _, done, count: (model.wanted + [7] * 99)[len(done) :][:count]) if drafts else None
    )
    run = SchedulerRun(
        engine_config(folder, drafts=drafts, **(config or {})), model, drafter=drafter
    )
    run.submit("r", structured, **sampling)
    outcome = run.run()["r"]
    return tokenizer.decode(outcome.tokens), outcome


# ------------------------------------------------------------------------------- how it is found


LOAD = """
from vllm.plugins import load_general_plugins
load_general_plugins()
import ffwd.adapters.vllm
ffwd.adapters.vllm.register()
from vllm.config import StructuredOutputsConfig, VllmConfig
"""


def test_vllm_finds_the_backend_by_itself(tmp_path: Path) -> None:
    """Through the entry point; that it is loaded twice does no harm."""
    code = LOAD + "print('it is', StructuredOutputsConfig(backend='ffwd').backend)"
    assert "it is ffwd" in in_new_process(code, tmp_path)


NAMED = """
import os
os.environ.pop("VLLM_TARGET_DEVICE")
{before}
from vllm import LLM
{change}
try:
    LLM("nowhere", structured_outputs_config={{"backend": "ffwd"}})
except Exception as error:
    print("error:", type(error).__name__, error)
from vllm.v1.structured_output import StructuredOutputManager as M
print("manager:", M.__init__.__globals__["__name__"])
from vllm.config import DeviceConfig, VllmConfig
config = VllmConfig(
    structured_outputs_config={{"backend": "ffwd"}}, device_config=DeviceConfig("cpu")
)
print("whole:", config.structured_outputs_config)
"""


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import vllm.config",
        "from vllm.platforms import current_platform; current_platform.device_type",
        "from vllm.v1.engine.core import EngineCore",
        "import ffwd.adapters.vllm; ffwd.adapters.vllm.register()",
    ],
)
def test_python_may_name_the_backend_at_once(tmp_path: Path, before: str) -> None:
    """`LLM` reads its options before vLLM loads general plugins, and then the model's folder."""
    printed = in_new_process(NAMED.format(before=before, change=""), tmp_path)
    assert "error: " in printed
    assert "ValidationError" not in printed
    assert "manager: ffwd.adapters.vllm.patches" in printed
    assert "whole: StructuredOutputsConfig(backend='ffwd'" in printed


def test_python_is_told_why_the_backend_is_not_there(tmp_path: Path) -> None:
    change = "import vllm.v1.structured_output as m; del m.StructuredOutputManager.grammar_init"
    code = NAMED.format(before="", change=change).partition("from vllm.v1.structured")[0]
    printed = in_new_process(code, tmp_path)
    assert re.search("error: ValidationError .*is not as it was released", printed, re.DOTALL)


@pytest.mark.parametrize(
    "version", ["0.1.2", f"{NEXT}.0", f"1{NEWEST}.0", "dev", NEWEST, f"{NEXT}.0.dev3+gabc"]
)
def test_versions_that_are_not_supported(version: str) -> None:
    assert minor_version(version) not in SUPPORTED_VERSIONS


@pytest.mark.parametrize("release", [".0", ".1", ".0+cpu", ".1rc2"])
@pytest.mark.parametrize("supported", SUPPORTED_VERSIONS)
def test_versions_that_are_supported(supported: tuple[int, int], release: str) -> None:
    version = "{}.{}".format(*supported) + release
    assert minor_version(version) == supported


def test_an_unsupported_version_works_as_it_does_without_ffwd(tmp_path: Path) -> None:
    """It says so, and again to who names the backend."""
    code = (
        "import vllm\nvllm.__version__ = '0.1.2'\n"
        + LOAD
        + (
            "from vllm.v1.structured_output import StructuredOutputManager as M\n"
            "print('manager', M.__init__.__module__, StructuredOutputsConfig().backend)\n"
            "try:\n"
            "    StructuredOutputsConfig(backend='ffwd')\n"
            "except ValueError as error:\n"
            "    print('refused:', error)\n"
        )
    )
    printed = in_new_process(code, tmp_path)
    assert "manager vllm.v1.structured_output auto" in printed
    reason = f"ffwd supports {ffwd.adapters.vllm.supported()}, and this is vLLM 0.1.2"
    assert re.search(f"refused: .*{re.escape(reason)}", printed, re.DOTALL)
    assert "the structured outputs backend 'ffwd' is not available" in printed


def test_a_changed_vllm_is_not_broken(tmp_path: Path) -> None:
    """What ffwd extends may be missing in somebody's build."""
    code = (
        "import vllm.v1.structured_output as module\n"
        "del module.StructuredOutputManager.validate_tokens\n" + LOAD + "print('it works')"
    )
    printed = in_new_process(code, tmp_path)
    assert "it works" in printed
    assert "is not available: this vLLM" in printed
    assert "validate_tokens" in printed


def test_what_is_wrapped_is_listed_with_the_source_that_was_tested(folder: Path) -> None:
    """A new version of vLLM begins here: read what differs, then record it."""
    StructuredOutputManager(engine_config(folder))  # With it the scheduler is wrapped.
    minor = minor_version(vllm.__version__)
    assert minor in SUPPORTED_VERSIONS
    place = SUPPORTED_VERSIONS.index(minor)
    recorded = {str(symbol): symbol.fingerprints[place] for symbol in surface.SYMBOLS}
    assert recorded == {str(symbol): fingerprint(symbol) for symbol in surface.SYMBOLS}
    assert all(len(symbol.fingerprints) == len(SUPPORTED_VERSIONS) for symbol in surface.SYMBOLS)
    wrapped = {
        f"{owner.__module__}.{owner.__qualname__}.{name}"
        for owner in (StructuredOutputManager, SamplingParams, VllmConfig, Scheduler)
        for name, member in vars(owner).items()
        if inspect.isfunction(member) and member.__globals__["__name__"].startswith("ffwd.")
    }
    listed = {str(symbol) for symbol in surface.SYMBOLS if symbol.use.startswith("wrapped")}
    # Where the worker's part is wrapped, tests/integrations/test_vllm_runner_v2.py looks.
    assert {symbol.replace("config.vllm.", "config.") for symbol in wrapped} == {
        symbol for symbol in listed if not symbol.startswith("vllm.v1.worker.")
    }


def test_the_doctor_finds_what_is_wrong(
    folder: Path, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(findings: list[Finding], *topics: str) -> set[str]:
        return {finding.status for finding in findings if finding.topic in topics}

    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    monkeypatch.delenv("VLLM_USE_V2_MODEL_RUNNER", raising=False)
    assert {finding.status for finding in diagnose(tokenizer)} == {"ok"}
    monkeypatch.setenv("VLLM_PLUGINS", "lora")
    assert of(diagnose(), "plugin") == {"bad"}
    monkeypatch.setenv("VLLM_PLUGINS", "lora,ffwd")
    assert of(diagnose(), "plugin") == {"ok"}
    for value, runner in (("0", "V1"), ("1", "V2")):
        monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", value)
        (drafts,) = (finding for finding in diagnose() if finding.topic == "drafts")
        assert (drafts.status, f"the model runner {runner}" in drafts.text) == ("ok", True)
    monkeypatch.setattr(StructuredOutputManager, "grammar_init", lambda *_: None)
    (differing,) = (finding for finding in diagnose() if finding.topic == "sources")
    assert "StructuredOutputManager.grammar_init" in differing.text
    monkeypatch.setattr(vllm, "__version__", "9.9.0")
    assert of(diagnose(), "version") == {"bad"}


def test_the_option_of_the_command_line() -> None:
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    found = parser.parse_args(["--structured-outputs-config.backend", "ffwd"])
    assert found.structured_outputs_config.backend == "ffwd"
    assert StructuredOutputsConfig(backend="ffwd", disable_any_whitespace=True)
    with pytest.raises(ValidationError, match="disable_additional_properties is not supported by"):
        StructuredOutputsConfig(backend="ffwd", disable_additional_properties=True)
    with pytest.raises(ValidationError, match="disable_any_whitespace is only supported for"):
        StructuredOutputsConfig(backend="outlines", disable_any_whitespace=True)
    with pytest.raises(ValidationError, match="or 'ffwd'"):
        StructuredOutputsConfig(backend="fwd")


def test_other_backends_are_what_they_were(folder: Path) -> None:
    config = engine_config(folder, backend="guidance")
    manager = StructuredOutputManager(config)
    assert manager.backend is None
    assert manager.fill_bitmask_parallel_threshold == 128
    run = SchedulerRun(config, FollowingModel(WIDTH, END, [9]))
    run.submit("r", {"choice": ["yes"]})
    assert run.tokenizer.decode(run.run()["r"].tokens, skip_special_tokens=True) == "yes"
    assert type(run.manager.backend).__name__ == "GuidanceBackend"


def test_a_tokenizer_that_cannot_be_read_keeps_the_engine_from_starting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Strange:
        eos_token_id = 2

    monkeypatch.setattr(
        "vllm.v1.structured_output.cached_tokenizer_from_config", lambda **_: Strange()
    )
    with pytest.raises(VocabularyError, match=r"cannot read the engine's tokenizer, .*Strange"):
        StructuredOutputManager(engine_config(folder))


# ------------------------------------------------------------------------------ what it is asked


@pytest.mark.parametrize(
    ("structured", "says"),
    [
        ({"choice": ["a"], "disable_any_whitespace": True}, "disable_any_whitespace is not an"),
        ({"json": {}, "disable_additional_properties": True}, "disable_additional_properties is"),
        ({"json": {}, "whitespace_pattern": " ?"}, "whitespace_pattern is not an option of one"),
        ({"json_object": False}, "json_object must be true"),
    ],
)
def test_options_of_a_request_are_not_ignored(
    folder: Path, structured: dict[str, Any], says: str
) -> None:
    run = SchedulerRun(engine_config(folder), FollowingModel(WIDTH, END, []))
    with pytest.raises(VLLMValidationError, match=says):
        run.submit("r", structured)


def test_a_type_that_there_is_not(folder: Path) -> None:
    manager = StructuredOutputManager(engine_config(folder))
    option = type("Option", (), {"name": "SQL"})
    with pytest.raises(ffwd.FfwdError, match="type SQL, only JSON"):
        manager.backend.compile_grammar(option, "")


@pytest.mark.parametrize("compact", [False, True])
def test_whitespace(folder: Path, tokenizer: Any, compact: bool) -> None:
    wanted = '{"name": "Ada", "age": 36}'
    for structured in ({"json": PERSON}, {"json_object": True}):
        text, _ = said(
            folder,
            tokenizer,
            wanted,
            structured,
            config={"disable_any_whitespace": compact},
            max_tokens=200,
        )
        assert re.match(r'\{"name":\S' if compact else r'\{"name": "', text), text


def test_grammars_are_counted_beside_the_metrics_of_vllm(folder: Path, tokenizer: Any) -> None:
    def counted(result: str) -> float:
        return REGISTRY.get_sample_value("ffwd_grammar_requests_total", {"result": result}) or 0.0

    before = counted("compiled"), counted("refused")
    text, _ = said(folder, tokenizer, "counted", {"choice": ["counted", "compiled"]})
    assert text.startswith("counted")
    with pytest.raises(VLLMValidationError):
        said(folder, tokenizer, "counted", {"regex": "("})
    assert counted("compiled") > before[0]
    assert counted("refused") == before[1] + 1


def test_named_grammars_are_those_of_requests(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's request, read by vLLM, finds its grammar with its first mask."""
    formats = [
        {"type": "json_schema", "json_schema": {"name": "p", "schema": PERSON}},
        {"type": "json_object"},
    ]
    constraints: list[dict[str, Any]] = [
        {"choice": ["yes", "no"]},
        {"regex": "[a-z]+"},
        {"grammar": 'start: "a"'},
        {"json": PERSON | {"title": "again"}},
    ]
    lines = [{"response_format": each} for each in formats]
    lines += [{"structured_outputs": each} for each in constraints]
    warm = tmp_path / "warm.jsonl"
    warm.write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setenv("FFWD_WARM", str(warm))
    manager = StructuredOutputManager(engine_config(folder))
    backend = manager.backend
    backend.warming.join(600)
    for line in lines:
        asked = ChatCompletionRequest(messages=[{"role": "user", "content": "a"}], **line)
        structured = asked.to_sampling_params(100, {}).structured_outputs
        option, spec = get_structured_output_key(structured)
        kept = backend._cache.kept(grammar_request(option.name, spec, backend._config))
        assert kept is not None, line
        computed = kept.stats()["masks_computed"]
        grammar = backend.compile_grammar(option, spec)
        assert grammar.grammar is kept
        grammar.fill_bitmask(backend.allocate_token_bitmask(1), 0)
        assert kept.stats()["masks_computed"] == computed > 0
    warm.write_text("{}")
    with pytest.raises(WarmingError, match="line 1"):
        StructuredOutputManager(engine_config(folder))


def test_whitespace_has_an_end(folder: Path, tokenizer: Any) -> None:
    """A model that says nothing but blanks comes to the end of its answer all the same."""
    text, outcome = said(folder, tokenizer, "{" + " " * 500, {"json": PERSON}, max_tokens=900)
    assert outcome.reason == "stop"
    jsonschema_rs.validate(PERSON, json.loads(text.removesuffix("</s>").removesuffix("<|eot|>")))


@pytest.mark.parametrize("drafts", [0, 4])
def test_reasoning_is_free_until_it_ends(folder: Path, tokenizer: Any, drafts: int) -> None:
    thought = 'Hm, {"name"?</think>'
    answer = '{"name":"Ada","age":36}'
    config = {"reasoning_parser": "deepseek_r1"}
    text, outcome = said(
        folder, tokenizer, thought + answer, {"json": PERSON}, drafts=drafts, config=config
    )
    assert text == thought + answer + "</s>"
    assert outcome.reason == "stop"
    # The grammar holds from the first token after it.
    text, _ = said(
        folder,
        tokenizer,
        f"{thought}Well: {answer}",
        {"json": PERSON},
        drafts=drafts,
        config=config,
        max_tokens=60,
    )
    assert text.startswith(thought + "{")


def test_an_output_without_its_grammar_is_reported_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain completion has no end of reasoning, and vLLM's parser waits for one."""
    told: list[str] = []
    monkeypatch.setattr(step._logger, "warning", lambda text, *given: told.append(text % given))
    parser = {"reasoning_parser": "deepseek_r1"}
    for options, count in (({}, 0), ({**parser, "enable_in_reasoning": True}, 0), (parser, 1)):
        model = FollowingModel(WIDTH, END, [5, 6, 7, 8, 9, 10])
        run = SchedulerRun(engine_config(folder, **options), model)
        for name in ("first", "second"):
            run.submit(name, {"json": PERSON}, max_tokens=4)
        run.submit("plain", None, max_tokens=4)
        run.run()
        assert len(told) == count
    assert "request first ended without its grammar" in told[0]
    assert "'deepseek_r1'" in told[0]
    assert "4 tokens" in told[0]


def test_a_grammar_may_hold_in_reasoning(folder: Path, tokenizer: Any) -> None:
    config = {"reasoning_parser": "deepseek_r1", "enable_in_reasoning": True}
    text, _ = said(folder, tokenizer, "Hm</think>yes", {"choice": ["yes"]}, config=config)
    assert text.startswith("yes")


@pytest.mark.parametrize("drafts", [0, 3])
@pytest.mark.parametrize("stop", ["<pad>", "!"])
def test_a_client_may_name_stop_tokens(
    folder: Path, tokenizer: Any, stop: str, drafts: int
) -> None:
    """They end the text as end tokens do: where it can end, and nowhere else."""
    token = tokenizer.convert_tokens_to_ids(stop)
    text, outcome = said(
        folder, tokenizer, f"a{stop}", {"regex": "a(b!?c)*"}, drafts=drafts, stop_token_ids=[token]
    )
    assert (text, outcome.stop_reason) == (f"a{stop}", token)
    # In the middle of the text it is masked, although the grammar has `!` there.
    text, outcome = said(
        folder, tokenizer, f"ab{stop}", {"regex": "a(b!?c)*"}, drafts=drafts, stop_token_ids=[token]
    )
    assert text.startswith("abc" if stop == "!" else ("abc", "ab!c"))
    assert outcome.stop_reason in (token, None, SECOND_END)
    # Where nothing else may come, the text is cut as the client has asked.
    if stop == "!":
        text, outcome = said(
            folder, tokenizer, "ab!c", {"regex": "ab!c"}, drafts=drafts, stop_token_ids=[token]
        )
        assert (text, outcome.stop_reason) == ("ab!", token)


@pytest.mark.parametrize("drafts", [0, 4])
def test_an_end_that_is_ignored(folder: Path, tokenizer: Any, drafts: int) -> None:
    """With `ignore_eos` a text goes on after its end, without a grammar, and is no error."""
    text, outcome = said(
        folder,
        tokenizer,
        "yes</s>whatever",
        {"choice": ["yes"]},
        drafts=drafts,
        ignore_eos=True,
        max_tokens=6,
    )
    assert text.startswith("yes</s>what")
    assert (outcome.reason, len(outcome.tokens)) == ("length", 6)


# ------------------------------------------------------------------------------------ tool calls

TOOLS = [
    ChatCompletionToolsParam(
        type="function", function={"name": name, "strict": True, "parameters": PERSON}
    )
    for name in ("add_person", "drop_person")
]


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("model", sorted(SUPPORTED_STRUCTURAL_TAG_MODELS))
def test_the_tags_of_every_tool_parser(folder: Path, model: str, choice: str) -> None:
    """As vLLM makes them, whatever the backend: XGrammar's JSON."""
    manager = StructuredOutputManager(engine_config(folder))
    for reasoning in (False, True):
        tag = get_model_structural_tag(model, TOOLS, choice, reasoning)
        grammar = manager.backend.compile_grammar(
            StructuredOutputOptions.STRUCTURAL_TAG, tag.model_dump_json(), {END}
        )
        bitmask = manager.backend.allocate_token_bitmask(1)
        grammar.fill_bitmask(bitmask, 0)
        assert bitmask.any()
        if choice == "required":
            assert not grammar.accept_tokens("r", [END])


@pytest.mark.parametrize("drafts", [0, 4])
def test_a_tool_call_keeps_to_its_schema(folder: Path, tokenizer: Any, drafts: int) -> None:
    tag = get_model_structural_tag("hermes", TOOLS, "auto", False).model_dump_json()
    wanted = (
        'I add her.<tool_call>\n{"name": "add_person", "arguments": {"name":"Ada","age":"old"}}'
        "\n</tool_call>"
    )
    text, outcome = said(folder, tokenizer, wanted, {"structural_tag": tag}, drafts=drafts)
    called = re.search(r'"arguments": (.*?)\}\s*</tool_call>', text, re.DOTALL)
    assert text.startswith('I add her.<tool_call>\n{"name": "add_person", "arguments": {"name":')
    assert called is not None, text
    jsonschema_rs.validate(PERSON, json.loads(called[1]))
    assert outcome.reason == "stop"


def test_tags_in_the_older_form(folder: Path, tokenizer: Any) -> None:
    tag = {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": {"type": "boolean"}, "end": "</f>"}],
        "triggers": ["<f"],
    }
    text, _ = said(folder, tokenizer, "so <f>maybe", {"structural_tag": json.dumps(tag)})
    assert re.match(r"so <f>(true|false)</f>", text)


# -------------------------------------------------------------------------- grammars of a process


def test_grammars_are_kept_within_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = engine_config(folder)
    run = SchedulerRun(config, FollowingModel(WIDTH, END, []))
    store = GrammarStore()
    monkeypatch.setenv(CACHE_VARIABLE, "1")
    cache = store.cache(config.model_config, run.tokenizer)
    assert store.cache(config.model_config, run.tokenizer) is cache
    from ffwd.adapters.shared.requests import GrammarRequest

    for index in range(60):
        grammar = cache.get(GrammarRequest("json", json.dumps({"maxLength": index, **PERSON})))
        matcher = grammar.matcher()
        matcher.fill_bitmask(ffwd.allocate_bitmask(1, WIDTH))
    stats = cache.stats()
    assert stats.misses == 60
    assert stats.evictions > 0
    assert stats.memory_bytes < 2 << 20
    for wrong in ("0", "-1", "many", ""):
        monkeypatch.setenv(CACHE_VARIABLE, wrong)
        with pytest.raises(ffwd.FfwdError, match=CACHE_VARIABLE):
            GrammarStore().cache(config.model_config, run.tokenizer)
