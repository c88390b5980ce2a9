"""The real engines behind the interface: known verdicts, trivial masks, what they cannot do."""

import json
import subprocess
import sys
from array import array

import numpy as np
import pytest

import ffwd
from maskbench import engines
from maskbench.data import BUILTIN_CORPUS, builtin_cases
from maskbench.documents import SHARED_WHITESPACE, Document, Job, Whitespace, prepare
from maskbench.engines import EngineSetup, MissingEngineError, find, known_engines
from maskbench.engines.base import Engine, RefusedError
from maskbench.runner import RunSettings, run
from maskbench.tokenizer import HuggingFaceEncoder, describe, resolve
from maskbench.verdicts import Verdict
from maskbench.walk import MaskTimer

PLAIN = ("builtin_person", "builtin_tree", "builtin_number_bounds", "builtin_tool_call_choice")

MODULES = {
    "ffwd": "ffwd",
    "ffwd-any": "ffwd",
    "ffwd-escapes": "ffwd",
    "grid": "grid",
    "llama-cpp": "llama_cpp",
    "llguidance": "llguidance",
    "llguidance-unforced": "llguidance",
    "lm-format-enforcer": "lmformatenforcer",
    "outlines-core": "outlines_core",
    "xgrammar": "xgrammar",
    "xgrammar-compliant": "xgrammar",
}
# Not among what CI installs, for it is compiled; and what needs Python 3.11.
INSTALLED_BY = {
    "llama-cpp": "pip install llama-cpp-python gguf",
    "grid": "pip install 'grid-guardrail[kernel]'",
}

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "on": {"type": "boolean"}},
    "required": ["x", "on"],
    "additionalProperties": False,
}
WORDS = {"type": "string", "enum": ["red", "green", "refused"]}
NAMES = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}
KINDS = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, kind: {"type": "integer"}},
            "required": ["kind", kind],
            "additionalProperties": False,
        }
        for kind in ("cat", "dog")
    ]
}
# What every engine gets right: schema, valid texts, invalid texts.
KNOWN = [
    (POINT, ['{"x":-12,"on":true}', '{"x":0,"on":false}'],
     ['{"x":1}', '{"x":"1","on":true}', '{"x":1,"on":true,"y":1}', "[]"]),
    (WORDS, ['"red"', '"refused"'], ['"re"', '"blue"', "red", "null"]),
    (NAMES, ['["a"]', '["Ada Okafor","x"]'], ["[]", '["a","b","c"]', "[1]", '"a"']),
    (KINDS, ['{"kind":"cat","cat":1}', '{"kind":"dog","dog":2}'],
     ['{"kind":"cat","dog":1}', '{"kind":"cow"}', "{}"]),
]  # fmt: skip
# Whose masks hold, bit by bit, what these schemas admit. The prefixes are of compact documents.
TRIVIAL = [
    (WORDS, ["", '"', '"r', '"re', '"red', '"red"']),
    ({"type": "boolean"}, ["", "t", "tru", "true"]),
    (POINT, ['{"x', '{"x"', '{"x":1,"on', '{"x":1,"on":t']),
]


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return resolve("builtin", tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def white(spec):
    """The tokens with whitespace in them, as a byte-level tokenizer spells it."""
    model = json.loads((spec.directory / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    return {token for text, token in model["vocab"].items() if set(text) & set("ĠĊĉč")}


@pytest.fixture(scope="module")
def cases():
    return builtin_cases()


@pytest.fixture(scope="module")
def made(spec):
    """Each engine once, by name and setup."""
    kept = {}

    def make(name, **options):
        if name in INSTALLED_BY:
            pytest.importorskip(MODULES[name], reason=INSTALLED_BY[name])
        options = {"whitespace": Whitespace.FLEXIBLE} | options
        key = (name, *sorted(options.items()))
        if key not in kept:
            kept[key] = find(name)(EngineSetup(spec, **options))
        return kept[key]

    return make


def jobs_of(cases, spec, whitespace):
    encoder = HuggingFaceEncoder(spec)
    return [prepare(case, i, encoder, whitespace).job for i, case in enumerate(cases)]


def allowed(engine, vocab_size):
    bits = np.unpackbits(engine.bitmask.view(np.uint8), bitorder="little")[:vocab_size]
    return set(np.flatnonzero(bits).tolist())


def test_every_file_with_an_engine_is_found():
    assert known_engines() == tuple(sorted(MODULES))
    for name in MODULES:
        assert find(name).name == name


def test_a_new_engine_is_one_file(tmp_path, monkeypatch):
    """A file in the folder is enough; what has no name, or is only imported, is none."""
    (tmp_path / "echo.py").write_text(
        "from maskbench.engines.ffwd import FfwdEngine\n"
        "class Echo(FfwdEngine):\n    name = 'echo'\n"
        "class Nameless(FfwdEngine):\n    pass\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    engines._known.cache_clear()
    try:
        assert known_engines() == tuple(sorted([*MODULES, "echo"]))
        assert find("echo").__name__ == "Echo"
        (tmp_path / "twin.py").write_text(
            (tmp_path / "echo.py").read_text(encoding="utf-8"), encoding="utf-8"
        )
        engines._known.cache_clear()
        with pytest.raises(ValueError, match="two engines are called 'echo'"):
            known_engines()
    finally:
        monkeypatch.undo()
        engines._known.cache_clear()
        for name in ("echo", "twin"):
            sys.modules.pop(f"maskbench.engines.{name}", None)


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith("ffwd")])
def test_a_missing_engine_names_its_install_command(name, spec, monkeypatch):
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    with pytest.raises(MissingEngineError, match="pip install"):
        find(name)(EngineSetup(spec, Whitespace.FLEXIBLE))


def test_looking_for_engines_loads_none_of_their_packages():
    code = (
        "import sys; from maskbench.engines import known_engines; known_engines();"
        f"loaded = {set(MODULES.values()) - {'ffwd'}} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=BUILTIN_CORPUS.parents[1])


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("known", KNOWN, ids=["object", "enum", "array", "union"])
def test_known_verdicts(made, spec, name, known):
    engine = made(name)
    schema, valid, invalid = known
    encoder = HuggingFaceEncoder(spec)
    documents = tuple(
        Document(label, array("i", encoder.encode(text)))
        for label, texts in ((True, valid), (False, invalid))
        for text in texts
    )
    measured, _ = MaskTimer(engine, spec.eos_token_ids).measure(
        Job(0, "known", json.dumps(schema), documents)
    )
    assert (measured.refused, measured.failed) == (None, None)
    assert [(result.outcome.value, result.problem) for result in measured.documents] == [
        ("accepted" if document.valid else "rejected", None) for document in documents
    ]


@pytest.mark.parametrize("name", [name for name in MODULES if name != "ffwd"])
@pytest.mark.parametrize("trivial", TRIVIAL, ids=["enum", "boolean", "object"])
def test_masks_of_trivial_grammars_are_those_of_ffwd(made, spec, white, name, trivial):
    """Bit by bit, but for whitespace, of which some engines allow less.

    Where one text only can follow, llguidance allows no tokens but those that it would force.
    Escapes add tokens with a backslash.
    """
    schema, prefixes = trivial
    other, ours = made(name), made("ffwd")
    encoder = HuggingFaceEncoder(spec)
    for prefix in prefixes:
        masks = []
        for engine in (ours, other):
            session = engine.compile(json.dumps(schema)).session()
            for token in encoder.encode(prefix) if prefix else []:
                session.fill()
                assert session.accept(token), (prefix, token)
            session.fill()
            assert session.problem() is None
            masks.append(allowed(engine, spec.vocab_size) - white)
        if name.startswith("llguidance") and masks[1]:
            assert masks[1] <= masks[0], prefix
        elif name == "ffwd-escapes":
            tokenizer = ffwd.tokenizer.load(spec.directory)
            assert masks[0] <= masks[1], prefix
            assert all(b"\\" in tokenizer.token_bytes(token) for token in masks[1] - masks[0])
        else:
            assert masks[0] == masks[1], prefix
        assert masks[0], prefix


@pytest.mark.parametrize("name", MODULES)
def test_a_token_outside_of_the_mask_is_refused(made, spec, name):
    engine = made(name)
    encoder = HuggingFaceEncoder(spec)
    session = engine.compile(json.dumps(WORDS)).session()
    session.fill()
    (brace,) = encoder.encode("{")
    assert brace not in allowed(engine, spec.vocab_size)
    assert not session.accept(brace)


@pytest.mark.parametrize("name", MODULES)
def test_versions_and_options_are_recorded(made, name):
    versions = made(name).versions()
    assert versions.pop("options")
    assert versions
    assert all(version[0].isdigit() for version in versions.values())


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("llguidance", {"property_order": "any"}, "no such property order"),
        ("outlines-core", {"property_order": "any"}, "no such property order"),
        ("outlines-core", {"whitespace": Whitespace.SINGLE_SPACE}, "no such whitespace"),
        ("llguidance", {"whitespace": Whitespace.CONSISTENT}, "no such whitespace"),
        ("grid", {"property_order": "any"}, "no such property order"),
        ("grid", {"whitespace": Whitespace.COMPACT}, "no such whitespace"),
        ("xgrammar", {"whitespace": Whitespace.CONSISTENT}, "no such whitespace"),
        ("outlines-core", {"whitespace": Whitespace.CONSISTENT}, "no such whitespace"),
        ("llama-cpp", {"property_order": "any"}, "no such property order"),
        ("llama-cpp", {"whitespace": Whitespace.COMPACT}, "no such whitespace"),
        ("lm-format-enforcer", {"whitespace": Whitespace.COMPACT}, "no such whitespace"),
    ],
)
def test_a_mode_that_an_engine_has_not_is_refused(made, name, options, reason):
    with pytest.raises(RefusedError) as refusal:
        made(name, **options).compile(json.dumps(WORDS))
    assert refusal.value.reason == reason
    assert "it has" in refusal.value.detail


def test_property_orders_are_two_engines_of_one_run(made, spec):
    swapped = array("i", HuggingFaceEncoder(spec).encode('{"on":true,"x":1}'))
    job = Job(0, "swapped", json.dumps(POINT), (Document(True, swapped),))
    outcomes = {
        name: MaskTimer(made(name), spec.eos_token_ids).measure(job)[0].documents[0].outcome.value
        for name in ("ffwd", "ffwd-any", "lm-format-enforcer", "llguidance")
    }
    assert outcomes == {
        "ffwd": "rejected",
        "ffwd-any": "accepted",
        "lm-format-enforcer": "accepted",
        "llguidance": "rejected",
    }


def test_strict_xgrammar_allows_no_member_that_is_not_named(made, spec):
    more = array("i", HuggingFaceEncoder(spec).encode('{"x":1,"z":2}'))
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    job = Job(0, "open", json.dumps(schema), (Document(True, more),))
    outcomes = [
        MaskTimer(made(name), spec.eos_token_ids).measure(job)[0].documents[0].outcome.value
        for name in ("xgrammar", "xgrammar-compliant")
    ]
    assert outcomes == ["rejected", "accepted"]


def test_what_an_engine_says_of_a_schema_that_it_does_not_take(made):
    """The message is the engine's own, wherever it writes it."""
    refused = {
        "lm-format-enforcer": ({"enum": [None, 1]}, "Unsupported enum type"),
        "llama-cpp": ({"type": "string", "pattern": "^a\\.b.?$"}, "unknown escape"),
    }
    for name, (schema, message) in refused.items():
        if name in INSTALLED_BY:
            pytest.importorskip(MODULES[name], reason=INSTALLED_BY[name])
        with pytest.raises(RefusedError, match=message):
            made(name).compile(json.dumps(schema)).session()


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("lm-format-enforcer", {"type": "object", "self": 1}),
        ("llama-cpp", {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}),
    ],
)
def test_an_engine_that_stumbles_has_not_refused(made, spec, name, schema):
    """An error of its own while compiling is a failure, since it says nothing of the schema."""
    measured, _ = MaskTimer(made(name), spec.eos_token_ids).measure(
        Job(0, "x", json.dumps(schema), ())
    )
    assert measured.refused is None
    assert measured.failed.partition(":")[0] in ("TypeError", "KeyError")


def test_an_error_that_lm_format_enforcer_only_logs_is_a_problem(made, spec):
    """It goes on with a mask of nothing but the end, which is no verdict on the document."""
    schema = {"type": "object", "properties": {"a": {"enum": [None, 1]}}, "required": ["a"]}
    text = array("i", HuggingFaceEncoder(spec).encode('{"a":1}'))
    job = Job(0, "nested", json.dumps(schema), (Document(True, text),))
    measured, _ = MaskTimer(made("lm-format-enforcer"), spec.eos_token_ids).measure(job)
    assert measured.documents[0].outcome.value == "failed"
    assert "Unsupported enum type" in measured.documents[0].problem


def test_llama_cpp_has_tokens_of_equal_text_and_many_ends(tmp_path):
    pytest.importorskip("llama_cpp", reason=INSTALLED_BY["llama-cpp"])
    folder = resolve("builtin", tmp_path).directory
    (folder / "generation_config.json").write_text('{"eos_token_id": [0, 4096]}', encoding="utf-8")
    spec = describe(folder, "two ends")
    engine = find("llama-cpp")(EngineSetup(spec, Whitespace.FLEXIBLE))
    session = engine.compile('{"type": "null"}').session()
    for token in HuggingFaceEncoder(spec).encode("null"):
        session.fill()
        assert session.accept(token)
    session.fill()
    assert allowed(engine, spec.vocab_size) >= {0, 4096}
    # As if id 0 had the text of another token.
    engine.first[0] = session_first = HuggingFaceEncoder(spec).encode("null")[0]
    session = engine.compile('{"type": "null"}').session()
    session.fill()
    assert {0, session_first} <= allowed(engine, spec.vocab_size)
    assert session.accept(0)


def test_consistent_whitespace_is_one_layout_that_the_text_chooses(made, spec):
    encoder = HuggingFaceEncoder(spec)
    texts = ('{"on":true,"x":1}', '{"on": true, "x": 1}', '{\n  "on": true,\n  "x": 1\n}')
    mixed = ('{"on":true, "x":1}', '{"on": true,"x":1}', '{ "on":true,"x":1}')
    documents = tuple(Document(True, array("i", encoder.encode(t))) for t in (*texts, *mixed))
    engine = made("ffwd-any", whitespace=Whitespace.CONSISTENT)
    job = Job(0, "layouts", json.dumps(POINT), documents)
    measured, _ = MaskTimer(engine, spec.eos_token_ids).measure(job)
    outcomes = [document.outcome.value for document in measured.documents]
    assert outcomes == ["accepted"] * len(texts) + ["rejected"] * len(mixed)


@pytest.mark.parametrize(
    ("name", "whitespace"),
    [
        ("ffwd", Whitespace.CONSISTENT),
        *((name, w) for name in ("ffwd", "llguidance", "xgrammar") for w in SHARED_WHITESPACE),
    ],
)
def test_every_engine_passes_plain_schemas(spec, cases, name, whitespace, tmp_path):
    chosen = [case for case in cases if case.id in PLAIN]
    assert len(chosen) == len(PLAIN)
    setup = EngineSetup(spec, whitespace, cold_store=True)
    jobs = jobs_of(chosen, spec, whitespace)
    log = run([name], [jobs], setup, RunSettings(), tmp_path)[name]
    assert {r.id: (r.verdict, r.detail) for r in log.records} == dict.fromkeys(
        PLAIN, (Verdict.PASSED, None)
    )
    assert log.versions[name]
    for record in log.records:
        if name == "xgrammar":
            assert record.forced is None
        else:
            assert record.forced.tokens > record.forced.forced >= 0
    if whitespace is not Whitespace.FLEXIBLE and name != "xgrammar":
        assert sum(record.forced.forced for record in log.records) > 0


def test_ffwd_is_never_wrong_on_the_corpus(spec, cases):
    engine = find("ffwd")(EngineSetup(spec, Whitespace.FLEXIBLE))
    walker = MaskTimer(engine, spec.eos_token_ids)
    forced = tokens = 0
    for case, job in zip(cases, jobs_of(cases, spec, Whitespace.FLEXIBLE), strict=True):
        measured, compiled = walker.measure(job)
        assert measured.failed is None, case.id
        outcomes = [document.outcome == "accepted" for document in measured.documents]
        if measured.refused is None:
            assert outcomes == [test.valid for test in case.tests], case.id
            count = walker.count_forced(compiled, job.documents, measured)
            assert count.noncanonical == 0, case.id
            forced, tokens = forced + count.forced, tokens + count.tokens
        else:
            assert measured.refused[0].startswith("unsupported: "), case.id
    assert forced / tokens > 0.1


def test_an_engine_of_ones_own_is_named_by_module_and_class():
    assert issubclass(find("maskbench_fake_engine:FakeEngine"), Engine)
    for name in ("nonesuch", "nonesuch:Engine", "json:JSONDecoder", "json:nothing"):
        with pytest.raises(MissingEngineError, match=name.partition(":")[0]):
            find(name)
