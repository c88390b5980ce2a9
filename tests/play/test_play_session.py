"""From requests of the page to answers, without a server and a browser."""

import json
import sys
import threading

import jsonschema
import pytest
from playing import SCHEMA, state

import ffwd
import ffwd.model
import ffwd.tokenizer
from ffwd.play import share
from ffwd.play.errors import PlayError
from ffwd.play.schema import STATE, check
from ffwd.play.session import EXAMPLE, Session
from ffwd.play.state import Units, grammar_of, source_of


@pytest.fixture(scope="module")
def session():
    found = Session()
    yield found
    found.close()


def look(session, *arguments, **more):
    answer = session.answer({"kind": "look", "state": state(*arguments, **more)})
    assert "error" not in answer, answer
    return answer


def test_tokens_have_their_kinds_and_ends(session):
    text = '{"name": "Ada", "status": "paid"}'
    answer = look(session, text)
    ends, kinds = [t[0] for t in answer["tokens"]], [t[1] for t in answer["tokens"]]
    assert "".join(token[4] for token in answer["tokens"]) == text
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    assert {"accepted", "forced"} == set(kinds)
    recording = ffwd.view.replay(
        ffwd.compile(ffwd.json_schema(SCHEMA), ffwd.tokenizer.load(ffwd.model.path()).vocabulary()),
        text,
    )
    expected = ["accepted" if step.kind == "sampled" else step.kind for step in recording.steps]
    assert kinds == expected
    sizes = [None if step.allowed is None else step.allowed.count for step in recording.steps]
    assert [token[2] for token in answer["tokens"]] == sizes
    assert answer["complete"]
    assert answer["refused"] is None
    cost = answer["cost"]
    assert cost["tokens"] == len(kinds)
    assert cost["forced"] == kinds.count("forced")
    assert cost["passes"] == cost["masks"] == kinds.count("accepted")
    assert cost["share"] == cost["forced"] / cost["tokens"]


def test_a_refused_byte_has_reasons_at_their_lines(session):
    refused = look(session, '{"name": "ada"}')["refused"]
    assert refused["byte"] == refused["at"] == 10
    (reason,) = refused["reasons"]
    assert reason["where"] == [{"name": "#/properties/name", "line": 4, "column": 13}]
    assert "string" in refused["instead"][0]["what"]


def test_offsets_are_in_utf_16_units(session):
    grammar = '{"type": "object", "additionalProperties": {"type": "integer"}}'
    text = '{"😀é": x'
    answer = look(session, text, grammar=grammar, tokenizer="bytes")
    assert answer["refused"]["byte"] == len('{"😀é": '.encode())
    assert answer["refused"]["at"] == len('{"😀é": '.encode("utf-16-le")) // 2
    inside = look(session, text, grammar=grammar, tokenizer="bytes", cursor=4)
    # After the first character, which is two units.
    assert inside["cursor"]["num_tokens"] == len('{"😀'.encode())
    with pytest.raises(ffwd.TextError):
        Units("\ud800")
    answer = session.answer({"kind": "look", "state": state('"\ud800', grammar="{}")})
    assert (answer["error"]["type"], answer["error"]["about"]) == ("TextError", "text")


@pytest.mark.parametrize("text", ["", "aé€😀b", "😀😀", "plain"])
def test_units_and_bytes_are_inverse(text):
    units = Units(text)
    for place, character in enumerate(text):
        offset = len(text[:place].encode())
        width = len(text[:place].encode("utf-16-le")) // 2
        assert units.of_bytes(offset) == width
        assert units.to_bytes(width) == offset
        if ord(character) > 0xFFFF:
            assert units.to_bytes(width + 1) == offset + 4
    assert units.to_bytes(10**6) == len(text.encode())


def test_the_cursor_has_what_follows(session):
    text = '{"name": "Ada", "status": "'
    cursor = look(session, text)["cursor"]
    names = {token[1] for token in cursor["allowed"]}
    assert {"new", "paid", "n", "p", "s"} <= names
    assert cursor["mask"] == len(cursor["allowed"])
    assert cursor["completion"]["text"] == 'new"}'
    assert cursor["expected"][0]["where"] == [
        {"name": "#/properties/status", "line": 5, "column": 15}
    ]
    assert not cursor["can_end"]
    before = look(session, text, cursor=2)["cursor"]
    assert before["forced"] == 'name":'
    assert before["forced_tokens"][0][1] == "name"
    assert look(session, "[", cursor=1)["cursor"] == {"refused": True}
    assert look(session, "[", cursor=0)["cursor"]["mask"] > 0


def test_the_first_tokens_of_a_mask_are_its_first(session):
    cursor = look(session, '{"name": "A')["cursor"]
    vocabulary = ffwd.tokenizer.load(ffwd.model.path()).vocabulary()
    matcher = ffwd.compile(ffwd.json_schema(SCHEMA), vocabulary).matcher()
    matcher.accept_tokens(vocabulary.encode(b'{"name": "A'))
    allowed = matcher.allowed_token_ids()
    assert cursor["mask"] == len(allowed)
    assert [token[0] for token in cursor["allowed"]] == allowed[:60]


@pytest.mark.parametrize(
    ("language", "text", "line", "column"),
    [
        ("json-schema", '{"type":\n "objec"}', 2, 2),
        ("json-schema", '{"type": "object",\n "a"}', 2, 5),
        ("json-schema", '{"properties": {"a": {\n"pattern": "("}}}', 2, 12),
        ("lark", 'start: a\na: "x" b', 2, 8),
        ("gbnf", 'root ::= "a"\nb ::= [', 2, 7),
        ("ebnf", "root ::= (", 1, 10),
        ("regex", "a(b", 1, 2),
    ],
)
def test_errors_have_their_position(session, language, text, line, column):
    answer = session.answer({"kind": "look", "state": state(grammar=text, language=language)})
    error = answer["error"]
    assert (error["line"], error["column"]) == (line, column), error
    assert error["about"] == "grammar"


def test_keywords_are_reported_where_they_are(session):
    text = '{\n"propertees": {},\n"title": "x",\n"patternProperties": {"(a)\\\\1": {}}}'
    grammar = {"language": "json-schema", "text": text}
    found = session.answer({"kind": "check", "grammar": grammar})
    assert found["counts"]["ignored"] == 2
    assert [(one["keyword"], one["line"]) for one in found["noted"]][:2] == [
        ("propertees", 2),
        ("title", 3),
    ]
    assert "did you mean `properties`?" in found["problems"][0]["message"]
    assert {one["severity"] for one in found["problems"]} == {"warning", "error"}
    lark = {"language": "lark", "text": 'start: "a"\nother: "b"'}
    (unused,) = session.answer({"kind": "check", "grammar": lark})["problems"]
    assert (unused["line"], unused["message"]) == (2, "the rule `other` is not used")


def test_documents_are_valid_and_have_their_cost(session):
    asked = {"kind": "documents", "state": state(seed=3), "count": 10}
    answer = session.answer(asked)
    assert len(answer["documents"]) == 10
    for one in answer["documents"]:
        jsonschema.validate(json.loads(one["text"]), json.loads(SCHEMA))
        assert one["tokens"] == one["forced"] + one["passes"] > 0
    texts = [one["text"] for one in answer["documents"]]
    assert texts == list(ffwd.sample_documents(ffwd.json_schema(SCHEMA), 10, seed=3))
    refused = session.answer({**asked, "count": 51})["error"]
    assert "must be at most 50" in refused["message"]


def test_the_model_continues_and_heals_what_was_begun(session):
    begun = '{"name": "Ada", "status": "'
    answer = session.answer(
        {"kind": "generate", "state": state(begun + "xyz", cursor=len(begun), prompt="Ada paid.")}
    )
    assert answer["text"].startswith(begun)
    jsonschema.validate(json.loads(answer["text"]), json.loads(SCHEMA))
    assert answer["tokenizer"] == "box"
    assert answer["forced"] + answer["passes"] >= answer["new_tokens"]
    shown = look(session, answer["text"], tokens=answer["tokens"])
    healed = [token[4] for token in shown["tokens"] if token[1] == "healed"]
    assert "".join(healed)
    assert begun.endswith("".join(healed))
    ids = [token[3] for token in shown["tokens"]]
    assert ids == answer["tokens"]["ids"]
    # Ids of another text are not used.
    other = look(session, '{"name": "Bob', tokens=answer["tokens"])
    assert "healed" not in {token[1] for token in other["tokens"]}


def test_a_text_that_the_grammar_refuses_is_not_continued(session):
    answer = session.answer({"kind": "generate", "state": state("[1")})
    assert answer["error"]["type"] == "PrefillError"
    none = session.answer({"kind": "generate", "state": state(max_tokens=2)})
    assert none["error"]["type"] == "BudgetError"


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    session = Session()
    assert "error" not in session.answer({"kind": "hello"})
    error = session.answer({"kind": "look", "state": state()})["error"]
    assert error == {
        "type": "MissingPackage",
        "message": "tokenizers is not installed: pip install 'ffwd[tokenizers]'",
    }
    assert session.answer({"kind": "look", "state": state("{", tokenizer="bytes")})["tokens"]


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        ({}, "unknown kind"),
        ({"kind": ["look"]}, "unknown kind"),
        ({"kind": "look", "tab": 3}, "`/tab`"),
        ({"kind": "look"}, "lacks `state`"),
        ({"kind": "look", "state": {}}, "`/state` lacks `grammar`"),
        ({"kind": "look", "state": state(text=3)}, "`/state/text` must be string, not 3"),
        ({"kind": "look", "state": state(cursor=-1)}, "`/state/cursor` must be at least 0"),
        ({"kind": "look", "state": state(cursor=True)}, "must be integer, not True"),
        ({"kind": "look", "state": state(temperature=float("nan"))}, "must be at most 10"),
        ({"kind": "look", "state": state(extra=1)}, "unknown name `extra`"),
        ({"kind": "look", "state": state("x" * (1 << 18) + "x")}, "must be at most 262,144"),
        ({"kind": "look", "state": state(language="yacc")}, "must be one of `json-schema`"),
        ({"kind": "look", "state": state(language="python")}, "made in Python"),
        ({"kind": "look", "state": state(tokenizer="/etc")}, "is not loaded"),
        ({"kind": "tokenizer", "path": "gpt2"}, "no file or directory `gpt2`"),
        ({"kind": "tokenizer", "path": ""}, "no file or directory"),
        ({"kind": "open", "text": "{"}, "is not JSON: "),
        ({"kind": "open", "text": "[" * 100_000}, "is not a state"),
        ({"kind": "open", "text": '{"type": "object"}'}, "it lacks `ffwd_play`"),
        ({"kind": "open", "text": '{"ffwd_play": 2, "state": {}}'}, "has the version 2"),
        ({"kind": "open", "text": '{"ffwd_play": 1, "state": {}}'}, "`/state` lacks `grammar`"),
    ],
)
def test_bad_requests_are_refused_by_name(session, request_, said):
    answer = session.answer(request_)
    assert list(answer) == ["error"]
    assert said in answer["error"]["message"]
    json.dumps(answer, allow_nan=False)


def test_options_without_sense_are_refused_at_their_position(session):
    given = state()
    given["grammar"]["options"] = {"whitespace": "compact", "indent": 2}
    error = session.answer({"kind": "look", "state": given})["error"]
    assert error["pointer"] == "/grammar/options"
    assert "cannot be combined" in error["message"]


BRANCHES = {"allOf": [{"anyOf": [{"pattern": f"a{i}"}, {"pattern": f"b{i}"}]} for i in range(14)]}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("json-schema", "[" * 5000),
        ("json-schema", json.dumps(BRANCHES)),
        ("regex", "(" * 9999),
    ],
)
def test_hostile_grammars_end_in_an_error(session, language, text):
    answer = session.answer({"kind": "look", "state": state(grammar=text, language=language)})
    assert answer["error"]["message"]


def test_a_newer_request_of_a_tab_cancels_the_older_one(session, monkeypatch):
    begun, seen = threading.Event(), []

    def waits(request, cancellation):
        if request["first"]:
            begun.set()
            # Ends only because the newer request cancels it.
            while not cancellation.is_cancelled:
                pass
        seen.append((request["first"], cancellation.is_cancelled))
        return {}

    monkeypatch.setitem(session._answers, "look", waits)
    older = threading.Thread(
        target=session.answer, args=({"kind": "look", "tab": "a", "first": True},)
    )
    older.start()
    begun.wait()
    session.answer({"kind": "look", "tab": "b", "first": False})
    session.answer({"kind": "look", "tab": "a", "first": False})
    older.join()
    assert sorted(seen) == [(False, False), (False, False), (True, True)]
    assert session._running == {}


def test_cancelling_ends_a_request(session, monkeypatch):
    begun = threading.Event()

    def waits(request, cancellation):
        begun.set()
        while not cancellation.is_cancelled:
            pass
        return {"ended": True}

    monkeypatch.setitem(session._answers, "generate", waits)
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(session.answer({"kind": "generate", "tab": "a"}))
    )
    thread.start()
    begun.wait()
    assert session.answer({"kind": "cancel", "of": "generate", "tab": "a"}) == {}
    thread.join()
    assert answers == [{"ended": True}]


# ------------------------------------------------------------------------------ files and states


def test_a_state_comes_back_from_its_file(session):
    given = state('{"name": "', cursor=3, prompt="p", seed=7, max_tokens=9, temperature=0.5)
    given["grammar"] |= {
        "options": {"separators": [", ", ":"], "property_order": "any"},
        "registry": [["https://example.com/a", "{}"]],
    }
    text = session.answer({"kind": "save", "state": given})["text"]
    opened = session.answer({"kind": "open", "text": text})
    assert opened["tokenizer_known"]
    assert opened["state"] == {**given, "tokens": None}
    again = Session(opened["state"])
    assert again.answer({"kind": "hello"})["state"] == opened["state"]
    other = share.dump({**given, "tokenizer": "/elsewhere"})
    assert not session.answer({"kind": "open", "text": other})["tokenizer_known"]


@pytest.mark.parametrize(
    "value",
    [
        EXAMPLE,
        state(),
        state(tokens={"ids": [1], "healed": []}),
        state(tokens={"ids": [1]}),
        state(tokens=[]),
        state(cursor=1.5),
        state(cursor="1"),
        {**state(), "grammar": {"language": "regex", "text": "a", "flags": "i" * 11}},
        {**state(), "grammar": {"language": "regex", "text": "a", "registry": [["a"]]}},
        {**state(), "grammar": []},
        {},
        [],
    ],
)
def test_the_check_and_a_validator_agree(value):
    valid = jsonschema.Draft202012Validator(STATE).is_valid(value)
    if valid:
        check(value, STATE)
    else:
        with pytest.raises(PlayError):
            check(value, STATE)


@pytest.mark.parametrize(
    "grammar",
    [
        ffwd.json_schema(SCHEMA, whitespace="compact", numbers="any"),
        ffwd.json_schema(SCHEMA, separators=(",", ": ")),
        ffwd.regex("a+\n", dialect="python", flags="i"),
        ffwd.lark('start: "a"'),
        ffwd.gbnf('top ::= "a"', "top"),
        ffwd.ebnf('root ::= "a"'),
    ],
)
def test_a_grammar_and_its_state_are_the_same(grammar):
    data = grammar_of(grammar)
    check(data, STATE["properties"]["grammar"])
    assert source_of(data, None).grammar == grammar


def test_grammars_of_python_are_shown_as_they_are():
    grammar = ffwd.seq(ffwd.lit("a"), ffwd.regex("[0-9]"))
    data = grammar_of(grammar)
    assert data["language"] == "python"
    session = Session({"grammar": data, "tokenizer": "box", "text": "a7"}, given=grammar)
    assert session.answer({"kind": "look", "state": state("a7", language="python")})["complete"]
    refused = session.answer({"kind": "compare", "state": state(language="python")})
    assert "of Python" in refused["error"]["message"]
