"""`python -m maskbench conformance differential` in short, its judges, and cases of each rule.

At length it is run by hand; docs/differential.md has the figures.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.conformance.differential import grammar_case, schemas
from maskbench.conformance.differential.cases import (
    PEER,
    SUBJECT,
    Cases,
    CaseSettings,
    CaseTask,
    Engines,
    case_seed,
)
from maskbench.conformance.differential.court import (
    Court,
    unasserted_formats,
    without_unasserted_formats,
)
from maskbench.conformance.differential.draws import (
    Chars,
    Choice,
    Not,
    Repeat,
    RuleNode,
    Sequence,
    VerbatimText,
)
from maskbench.conformance.differential.grammar_case import DrawnGrammar, RecognisedCase
from maskbench.conformance.differential.journal import CaseJournal, CaseJournalError, plain
from maskbench.conformance.differential.lexed_case import LexedCase
from maskbench.conformance.differential.order import UnclearOrderError, in_declared_order
from maskbench.conformance.differential.recognisers import (
    AutomatonRecogniser,
    EarleyRecogniser,
    TooManyStatesError,
    is_utf8,
)
from maskbench.conformance.differential.reports import CaseReport, Finding, merged
from maskbench.conformance.differential.rules import FAMILIES, RULES
from maskbench.conformance.differential.schema_case import SchemaCase
from maskbench.conformance.differential.side_by_side import Contestant
from maskbench.conformance.differential.spelling import (
    NUMBERS,
    PLAIN,
    SPACE,
    STRINGS,
    explaining,
    respelled,
)
from maskbench.conformance.differential.writers import (
    GbnfWriter,
    LarkWriter,
    ParserWriter,
    as_regex,
)
from maskbench.conformance.gates.walks import byte_tokens
from maskbench.documents import Whitespace
from maskbench.engines.base import token_texts
from maskbench.tokenizer import TokenizerSpec, resolve

CASES = json.loads(Path(__file__).with_name("differential_cases.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> TokenizerSpec:
    return resolve("bytes", tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(scope="module")
def engines(spec: TokenizerSpec) -> Engines:
    return Engines(spec, token_texts(spec))


@pytest.fixture(scope="module")
def reports(spec: TokenizerSpec) -> list[CaseReport]:
    """A short run, with a fixed seed."""
    cases = Cases(CaseSettings(spec))
    return [cases(CaseTask(case_seed(20, number))) for number in range(30)]


def contestant(
    engines: Engines, name: str, kind: str, text: str, whitespace: Whitespace = Whitespace.FLEXIBLE
) -> Contestant:
    found = engines.contestant(name, whitespace, kind, text)
    assert isinstance(found, Contestant), found
    return found


def schema_case(schema: Any, report: CaseReport) -> SchemaCase:
    drawn = schemas.DrawnSchema("case", schema)
    source = random.Random(1)
    return SchemaCase(drawn, Court(schema), Whitespace.FLEXIBLE, byte_tokens(), report, source)


# ------------------------------------------------------------------------------------ the short run


def test_nothing_is_found(reports: list[CaseReport]):
    found = [finding for report in reports for finding in report.findings]
    assert not found, found


def test_a_short_run_compares_much(reports: list[CaseReport]):
    """Of every family, masks of both engines, and verdicts; every difference has its rule."""
    assert {report.family for report in reports} == set(FAMILIES)
    total = merged(reports)
    assert total.states > 2000
    assert total.bits == 257 * total.states
    assert total.verdicts > 500
    assert 0 < total.differing_states < total.states
    assert {name.partition(" (")[0] for name in total.classes} <= set(RULES)
    refused = sum(PEER in report.refused for report in reports)
    assert refused < len(reports) / 2


def test_a_case_is_the_same_again(spec: TokenizerSpec, reports: list[CaseReport]):
    """By itself, in a process that has run nothing else before."""
    again = Cases(CaseSettings(spec))
    for number in (7, 23):
        assert plain(again(CaseTask(case_seed(20, number)))) == plain(reports[number])


def test_the_longest_match_decides_nothing_in_rules(spec: TokenizerSpec):
    """Texts of rules are lexemes of one character: "bb" would take what "b" begins with."""
    report = Cases(CaseSettings(spec))(CaseTask(125373341300961))
    assert (report.family, report.name, report.findings) == ("rules", "lark", [])


# -------------------------------------------------------------------------------- known differences


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_each_rule_is_found_in_small_data(engines: Engines, case: dict[str, Any]):
    report = CaseReport(0, "case")
    prefix, token = octets(case, "prefix"), octets(case, "token")
    assert prefix is not None
    if "schema" in case:
        text = json.dumps(case["schema"], ensure_ascii=False)
        subject = contestant(engines, SUBJECT, "json_schema", text)
        peer = contestant(engines, PEER, "json_schema", text)
        schema_case(case["schema"], report).look(subject, peer, prefix, token)
    else:
        subject = contestant(engines, SUBJECT, "lark", case["lark"])
        peer = contestant(engines, PEER, "lark", case["lark"])
        node = Not(VerbatimText("a"))
        assert LarkWriter().terminal(Not(VerbatimText("a"))) == 'start: T\nT: ~("a")\n'
        drawn = DrawnGrammar("lark", case["lark"], AutomatonRecogniser(node))
        RecognisedCase(drawn, report, random.Random(1)).look(subject, peer, prefix, token)
    assert list(report.classes) == [case["found"]]
    assert not report.findings


def octets(case: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_hex" in case:
        return bytes.fromhex(case[f"{name}_hex"])
    return None if case[name] is None else case[name].encode()


# -------------------------------------------------------------------------- faults that it must see


def faults() -> Iterator[Any]:
    """What is said to be compiled, what really is, and what must come of it."""
    integer = {"type": "integer"}
    yield pytest.param(integer, {"type": "number"}, "ffwd accepts what is invalid", id="too much")
    yield pytest.param({}, {"type": ["integer", "null"]}, "ffwd refuses what is valid", id="less")


@pytest.mark.parametrize(("schema", "compiled", "what"), [*faults()])
def test_a_wrong_mask_is_a_finding(engines: Engines, schema: Any, compiled: Any, what: str):
    """The subject is given another schema than the judges."""
    report = CaseReport(0, "case")
    subject = contestant(engines, SUBJECT, "json_schema", json.dumps(compiled))
    peer = contestant(engines, PEER, "json_schema", json.dumps(schema))
    case = schema_case(schema, report)
    # As if its own grammar of bytes were as wrong.
    case.__dict__.update(dict.fromkeys(("_declared", "_any_order", "_formatless")))
    case.walks(subject, peer, 6, lambda text: list(text.encode()))
    assert {finding.what for finding in report.findings} == {what}
    assert json.loads(report.findings[0].source) == schema


def test_a_mask_that_lacks_a_token_of_its_own_grammar_is_a_finding(engines: Engines):
    """The subject's grammar of bytes accepts the text that its mask does not lead to."""
    report = CaseReport(0, "case")
    subject = contestant(engines, SUBJECT, "json_schema", '{"const": 1}')
    peer = contestant(engines, PEER, "json_schema", '{"enum": [1, 12]}')
    schema_case({"enum": [1, 12]}, report).walks(subject, peer, 2, lambda text: list(text.encode()))
    assert {finding.what for finding in report.findings} == {"ffwd contradicts itself"}
    assert report.findings[0].token == b"2"


@pytest.mark.parametrize(
    ("said", "compiled", "what"),
    [
        ("a|b", "a|c", {"ffwd accepts what is invalid", "ffwd refuses what is valid"}),
        ("(ab){2}", "(ab){1}", {"ffwd accepts what is invalid", "ffwd refuses what is valid"}),
    ],
)
def test_a_wrong_grammar_is_a_finding(engines: Engines, said: str, compiled: str, what: set[str]):
    nodes = {
        "a|b": Choice((VerbatimText("a"), VerbatimText("b"))),
        "(ab){2}": Repeat(VerbatimText("ab"), 2, 2),
    }
    report = CaseReport(0, "case")
    drawn = DrawnGrammar("regex", said, AutomatonRecogniser(nodes[said]))
    subject = contestant(engines, SUBJECT, "regex", compiled)
    peer = contestant(engines, PEER, "regex", said)
    RecognisedCase(drawn, report, random.Random(1)).walks(subject, peer, 6)
    assert {finding.what for finding in report.findings} == what


def test_what_both_get_wrong_is_a_finding(engines: Engines):
    report = CaseReport(0, "case")
    drawn = DrawnGrammar("regex", "a", AutomatonRecogniser(VerbatimText("b")))
    both = [contestant(engines, name, "regex", "a") for name in (SUBJECT, PEER)]
    RecognisedCase(drawn, report, random.Random(1)).walks(*both, 4)
    assert "both are wrong" in {finding.what for finding in report.findings}


def test_a_recogniser_is_not_asked_about_texts_that_are_too_long_for_it(engines: Engines):
    class Short(AutomatonRecogniser):
        longest = 4

        def _state(self, text: str) -> Any:
            assert len(text) <= self.longest
            return super()._state(text)

    report = CaseReport(0, "case")
    drawn = DrawnGrammar("regex", "a{6}", Short(VerbatimText("aaaaaa")))
    both = [contestant(engines, name, "regex", "a{6}") for name in (SUBJECT, PEER)]
    RecognisedCase(drawn, report, random.Random(1)).walks(*both, 2)
    assert not report.findings
    assert not report.verdicts
    assert list(report.classes) == ["not judged (a long text of ambiguous rules)"]


def test_lexers_that_disagree_are_a_finding(engines: Engines):
    """What is ignored at the end is documented, and named; another text is not."""
    text = "start: A\nA: /a*/\n%ignore / +/\n"
    other = "start: A\nA: /b/\n"
    blank = 'start: "b" T0 "c" | "c"\nT0: " " | "a"\n%ignore / +/\n'
    nullable = 'start: T0 T0 | T1\nT0: ("ac")?\nT1: " -"\n%ignore / +/\n'
    cases: list[tuple[str, Callable[[str], str], set[str], list[str]]] = [
        (text, str, set(), ["ignored at the end"]),
        (text, lambda _: other, {"unexplained"}, []),
        (blank, str, set(), ["ignored or lexeme"]),
        (nullable, str, set(), ["ignored at the end", "ignored or lexeme"]),
        (
            blank,
            lambda grammar: grammar.replace('| "a"', ""),
            {"unexplained"},
            ["ignored or lexeme"],
        ),
    ]
    for said, changed, found, classes in cases:
        report = CaseReport(0, "case")
        subject = contestant(engines, SUBJECT, "lark", said)
        peer = contestant(engines, PEER, "lark", changed(said))
        LexedCase(
            said,
            report,
            random.Random(1),
            lambda text, changed=changed: contestant(engines, PEER, "lark", changed(text)),
        ).walks(subject, peer, 8)
        assert {finding.what for finding in report.findings} == found
        assert sorted(report.classes) == classes


def test_an_order_that_is_not_kept_is_a_finding(engines: Engines):
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    report = CaseReport(0, "case")
    case = schema_case(schema, report)
    case.declared_order(['{"b":1,"a":2}'])
    assert report.verdicts == 1
    assert not report.findings
    # As if it were declared the other way round.
    other = {"type": "object", "properties": {"b": {}, "a": {}}}
    case.__dict__["_declared"] = schema_case(other, report)._declared
    case.declared_order(['{"b":1,"a":2}'])
    assert [finding.prefix for finding in report.findings] == [b'{"a":2,"b":1}']


def test_a_format_that_excuses_a_refusal_is_named():
    """A format of another dialect, and one that has less than is valid."""
    draft_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
    for schema, text, rule in (
        (draft_4 | {"format": "uri-reference"}, '"é"', "ffwd narrower: dialect"),
        ({"format": "hostname"}, '"xn--bcher-kva"', "ffwd narrower: format"),
    ):
        report = CaseReport(0, "case")
        schema_case({"type": "string", **schema}, report).verdicts([text])
        assert not report.findings
        assert rule in report.classes
        assert not {"ffwd narrower: format", "ffwd narrower: dialect"} - {rule} & {*report.classes}


# ------------------------------------------------------------------------------------------- judges


def test_each_dialect_has_its_formats():
    """The probe has no format of the last dialect, and drafts have ever more of them."""
    draft = "http://json-schema.org/draft-0{}/schema#"
    missing = [unasserted_formats(draft.format(number)) for number in (4, 6, 7)]
    assert missing[0] > missing[1] > missing[2] == {"duration", "uuid"}
    assert "uri-reference" in missing[0]
    assert not unasserted_formats(None)
    schema = {"$schema": draft.format(4), "items": {"format": "uuid", "properties": {"format": 1}}}
    kept = {"$schema": draft.format(4), "items": {"properties": {"format": 1}}}
    assert without_unasserted_formats(schema) == kept
    assert without_unasserted_formats({"format": "uuid"}) == {"format": "uuid"}


def test_drawn_grammars_are_read_by_everybody(engines: Engines):
    """And the ways of writing one mean the same to their readers."""
    for seed in range(60):
        source = random.Random(seed)
        drawn = grammar_case.draw(source, source.choice(("regex", "terminal", "rules")))
        assert isinstance(
            engines.contestant(SUBJECT, Whitespace.FLEXIBLE, drawn.kind, drawn.text), Contestant
        ), drawn.text


def test_an_expression_with_too_many_states_has_no_recogniser():
    any_char = Chars((), negated=True)
    part = Sequence((Repeat(VerbatimText("a"), 0, None), Repeat(any_char, 9, 20)))
    with pytest.raises(TooManyStatesError):
        AutomatonRecogniser(Repeat(part, 1, None))
    assert AutomatonRecogniser(Repeat(any_char, 3, 5)).accepts("abcd")


def test_recognisers_decide_within_characters():
    rules = (
        Choice((Sequence((VerbatimText("é"), RuleNode(0), VerbatimText("b"))), VerbatimText(""))),
    )
    earley = EarleyRecogniser(rules)
    assert ParserWriter().rules(rules) == 'start: r0\nr0: "é" r0 "b" | ()\n'
    assert GbnfWriter().rules(rules) == 'root ::= r0\nr0 ::= "é" r0 "b" | ""\n'
    automaton = AutomatonRecogniser(Repeat(Choice((VerbatimText("é"), Chars(("a",), True))), 2, 3))
    assert earley.accepts("ééb" + "b")
    assert not earley.accepts("ééb")
    assert [earley.allows(text) for text in (b"\xc3", b"\xc3\xa9b", b"\xc2", b"b")] == [
        True,
        True,
        False,
        False,
    ]
    assert automaton.allows("🐢".encode()[:3])
    assert not automaton.allows(b"a")
    assert not automaton.allows("🐢".encode() * 3 + b"\xf0")
    # Surrogates, too long forms and bytes beyond Unicode are no text.
    for wrong in (b"\xed\xa0", b"\xc0", b"\xe0\x80", b"\xf4\x90", b"\xff", b"\x80", b"a\xc3x"):
        assert not is_utf8(wrong)
    assert is_utf8(b"\xed\x9f")


def test_a_regular_expression_is_written_for_three_dialects():
    node = Sequence(
        (
            VerbatimText("-\\"),
            Choice((Chars((), True), VerbatimText("a"))),
            Repeat(VerbatimText("b"), 2, None),
        )
    )
    assert as_regex(node) == r"\-\\(.|a)(b){2,}"
    assert GbnfWriter().write(node) == r'"-\\" ([^\n] | "a") ("b"){2,}'
    assert ParserWriter().write(node) == r'"-" "\\" (/./ | "a") ("b")~2 ("b")*'


def test_spellings():
    text = '{ "\\u0061" : [1.50e1, 1E900, -0.0 ,"\\n"] }'
    spelled = '{"\\u0061":[1.50e1,1E900,-0.0,"\\n"]}'
    assert respelled(text, frozenset((SPACE,)), Whitespace.COMPACT) == spelled
    assert respelled(text, frozenset((NUMBERS, STRINGS)), Whitespace.COMPACT) == (
        '{ "a" : [15.0, 1E900, -0.0 ,"\\n"] }'
    )
    assert respelled("1e99999999999999999999", frozenset((PLAIN,)), Whitespace.COMPACT) == (
        "1e99999999999999999999"
    )
    found = explaining(text, Whitespace.COMPACT, lambda other: "15," in other and " " not in other)
    assert found == {SPACE, PLAIN}
    assert explaining("[1]", Whitespace.COMPACT, lambda other: True) == frozenset()
    assert explaining("[1]", Whitespace.COMPACT, lambda other: False) is None


def test_the_declared_order():
    schema = {
        "properties": {"b": {"$ref": "#/$defs/x"}, "a": {}},
        "$defs": {"x": {"items": {"properties": {"d": {}, "c": {}}}}},
    }
    instance = {"z": 0, "a": 1, "b": [{"c": 2, "d": 3, "b": 4}]}
    ordered = {"b": [{"d": 3, "c": 2, "b": 4}], "a": 1, "z": 0}
    assert list(map(str, in_declared_order(schema, instance, schema).items())) == list(
        map(str, ordered.items())
    )
    with pytest.raises(UnclearOrderError):
        in_declared_order({"allOf": [schema]}, instance, schema)


# -------------------------------------------------------------------------------------- the command


def test_a_run_goes_on_where_it_was(tmp_path: Path):
    """A line that was being written counts as not there; another run's file is refused."""
    file = tmp_path / "cases.jsonl"
    report = CaseReport(5, "schema", states=3)
    report.add("peer lost", "why")
    report.findings.append(
        Finding("case lost", "", "", {}, b"\xff", None, ("peer",), "it was killed")
    )
    CaseJournal(file, {"seed": 1}).add("bytes", report)
    with file.open("ab") as lines:
        lines.write(b'{"tokenizer": "byt')
    again = CaseJournal(file, {"seed": 1})
    assert again.done == {"bytes": [report]}
    again.add("bytes", report)
    assert CaseJournal(file, {"seed": 1}).done == {"bytes": [report, report]}
    with pytest.raises(CaseJournalError, match="of another run"):
        CaseJournal(file, {"seed": 2})


def test_the_command(tmp_path: Path):
    """Two cases in a process of their own; one of them again by its seed."""
    file = tmp_path / "cases.jsonl"
    arguments = [
        "conformance",
        "differential",
        "--seed",
        "20",
        "--minutes",
        "5",
        "--out",
        str(file),
    ]
    first = CliRunner().invoke(main, [*arguments, "--cases", "2"])
    assert first.exit_code == 0, first.output
    assert "Findings: 0" in first.output
    cases = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    assert [entry["case"]["seed"] for entry in cases] == [case_seed(20, 0), case_seed(20, 1)]
    one = CliRunner().invoke(
        main, ["conformance", "differential", "--case", str(case_seed(20, 1)), "--json"]
    )
    assert one.exit_code == 0, one.output
    run = json.loads(one.stdout)["runs"]["bytes"]
    assert run["cases"] == 1
    assert run["states"] == cases[1]["case"]["states"]
    # Nothing is left to do.
    again = CliRunner().invoke(main, [*arguments, "--cases", "2", "--json"])
    assert json.loads(again.stdout)["runs"]["bytes"]["cases"] == 2


class LosingCases:
    """Cases of which the second one loses its process, as does the next start after that.

    Starts are counted in the folder of schemas.
    """

    def __init__(self, settings: CaseSettings) -> None:
        starts = len(list(settings.schemas.iterdir()))
        (settings.schemas / str(starts)).touch()
        if starts == 1:
            os._exit(3)

    def __call__(self, task: CaseTask) -> CaseReport:
        if task.seed == case_seed(20, 1):
            os._exit(7)
        return CaseReport(task.seed, "schema")


def test_run_goes_on_after_a_lost_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("maskbench.conformance.differential.cases.Cases", LosingCases)
    file = tmp_path / "cases.jsonl"
    (tmp_path / "schemas").mkdir()
    arguments = ["conformance", "differential", "--seed", "20", "--cases", "4", "--out", str(file)]
    done = CliRunner().invoke(main, [*arguments, "--schemas", str(tmp_path / "schemas")])
    assert done.exit_code == 1
    assert "case lost: the process died or was killed" in done.output
    cases = [json.loads(line)["case"] for line in file.read_text().splitlines()[1:]]
    assert [case["seed"] for case in cases] == [case_seed(20, number) for number in range(4)]
    assert ["status 7" in (case["lost"] or "") for case in cases] == [False, True, False, False]
    assert len(list((tmp_path / "schemas").iterdir())) == 4
