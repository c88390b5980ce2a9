"""Grammars in SGLang's scheduler: its own manager, requests and sampling, without a model."""

import json
import re
from typing import Any

import jsonschema_rs
import pytest

pytestmark = pytest.mark.engine
pytest.importorskip("sglang")

from sglang.srt.constrained.base_grammar_backend import InvalidGrammarObject  # noqa: E402
from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_MATCHED_TOKEN  # noqa: E402
from sglangharness import SmallScheduler, end_id  # noqa: E402

SEED = 20261122

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,6}$"},
        "colour": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
        "count": {"type": "integer", "minimum": 0, "maximum": 99},
        "done": {"type": "boolean"},
    },
    "required": ["name", "colour", "done"],
    "additionalProperties": False,
}
CHOICE: dict[str, Any] = {"anyOf": [{"const": None}, {"type": "string", "maxLength": 6}]}
ARRAY: dict[str, Any] = {
    "type": "array",
    "prefixItems": [{"enum": [1, "one"]}, {"type": "boolean"}],
    "items": False,
    "minItems": 2,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
NAME = r"[A-Z][a-z]{2,5}( [A-Z]\.)?"
SUM = 'root ::= num (" + " num){1,3}\nnum ::= [1-9] [0-9]?'
SUM_PATTERN = r"[1-9][0-9]?( \+ [1-9][0-9]?){1,3}"
LARK_SUM = 'start: NUM (" + " NUM)~1..3\nNUM: /[1-9][0-9]?/'
NEW_TAG: dict[str, Any] = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<tool_call>",
        "content": {"type": "json_schema", "json_schema": PERSON},
        "end": "</tool_call>",
    },
}

# Texts of strangers that must fail alone, and a part of what the client is told.
HOSTILE = [
    ({"json_schema": '{"type": "zahl"}'}, "at /type"),
    ({"json_schema": '{"type": "object"'}, "not JSON"),
    ({"json_schema": '{"type": "integer", "minimum": 3, "maximum": 1}'}, "no"),
    ({"json_schema": "[" * 5000}, "recursion"),
    ({"json_schema": '{"pattern": "(", "type": "string"}'}, "/pattern"),
    ({"json_schema": '{"$ref": "#/nowhere"}'}, "nowhere"),
    ({"regex": "(a"}, "line 1, column 1"),
    ({"regex": "(" * 4000 + ")" * 4000}, ""),
    ({"regex": r"(a)\1"}, "backreference"),
    ({"ebnf": "root ::= missing"}, "missing"),
    ({"ebnf": 'root ::= "a" ('}, "line 1"),
    ({"ebnf": "root ::= root"}, "root"),
    ({"ebnf": 'start: "a" nowhere'}, "nowhere"),
    ({"structural_tag": '{"type": "structural_tag"}'}, ""),
    ({"structural_tag": '{"structures": [{"begin": "<f>"}], "triggers": []}'}, ""),
    ({"structural_tag": '{"format": {"type": "song"}}'}, "song"),
    ({"json_schema": '{"const": "a\\u0000b"}'}, "NUL"),
]


def is_json(schema: Any, text: str) -> bool:
    return jsonschema_rs.is_valid(schema, json.loads(text))


def is_new_tag(text: str) -> bool:
    inner = re.fullmatch(r"<tool_call>(.*)</tool_call>", text, flags=re.DOTALL)
    return inner is not None and is_json(PERSON, inner[1])


# What a request asks for, and who says whether it got it.
KINDS = [
    ({"json_schema": json.dumps(PERSON)}, lambda text: is_json(PERSON, text)),
    ({"json_schema": json.dumps(CHOICE)}, lambda text: is_json(CHOICE, text)),
    ({"json_schema": json.dumps(ARRAY)}, lambda text: is_json(ARRAY, text)),
    ({"regex": DATE}, lambda text: re.fullmatch(DATE, text)),
    ({"regex": NAME}, lambda text: re.fullmatch(NAME, text)),
    ({"ebnf": SUM}, lambda text: re.fullmatch(SUM_PATTERN, text)),
    ({"ebnf": LARK_SUM}, lambda text: re.fullmatch(SUM_PATTERN, text)),
    ({"structural_tag": json.dumps(NEW_TAG)}, is_new_tag),
]


@pytest.fixture
def scheduler() -> Any:
    print("seed", SEED)
    with SmallScheduler(seed=SEED, constrained_json_max_whitespace_cnt=1) as made:
        yield made


def abort_text(req: Any) -> str:
    reason = req.finished_reason
    assert isinstance(reason, FINISH_ABORT), reason
    return reason.message


def test_forty_mixed_requests_and_hostile_ones(scheduler: SmallScheduler) -> None:
    """Every output is what was asked for, and what cannot be compiled fails alone."""
    mixed = [(KINDS[i % len(KINDS)], f"r{i}") for i in range(40)]
    good = [(scheduler.request(name, **asked), check) for (asked, check), name in mixed]
    plain = [scheduler.request(f"plain{i}", max_new_tokens=30) for i in range(4)]
    bad = [
        (scheduler.request(f"bad{i}", **asked), part) for i, (asked, part) in enumerate(HOSTILE)
    ]
    everyone = [req for req, _ in good] + plain + [req for req, _ in bad]
    scheduler.random.shuffle(everyone)
    scheduler.run(scheduler.admit(everyone))
    for req, part in bad:
        message = abort_text(req)
        assert message.startswith("Failed to compile"), message
        assert part in message
    for req, check in good:
        assert isinstance(req.finished_reason, FINISH_MATCHED_TOKEN), (req.rid, req.finished_reason)
        assert req.output_ids[-1] == end_id()
        assert check(scheduler.text(req)), (req.rid, scheduler.text(req))
    for req in plain:
        assert req.finished()


def test_grammars_are_compiled_once_and_cached(scheduler: SmallScheduler) -> None:
    """The second request with the same text does not wait, and what it does is its own."""
    asked = {"json_schema": json.dumps(PERSON)}
    first, twin = scheduler.request("first", **asked), scheduler.request("twin", **asked)
    scheduler.admit([first, twin])
    assert scheduler.backend._compiled.stats().misses == 1
    second = scheduler.request("second", **asked)
    assert not scheduler.manager.process_req_with_grammar(second)
    assert second.grammar.compiled is first.grammar.compiled is twin.grammar.compiled
    scheduler.run([first])
    assert second.grammar.num_tokens == twin.grammar.num_tokens == 0
    scheduler.run([second, twin])
    for req in (first, second, twin):
        assert is_json(PERSON, scheduler.text(req))


def test_a_refused_grammar_is_refused_again_from_the_cache(scheduler: SmallScheduler) -> None:
    messages = set()
    for name in ("first", "second"):
        req = scheduler.request(name, regex="(a")
        scheduler.run(scheduler.admit([req]))
        messages.add(abort_text(req))
    assert len(messages) == 1
    assert isinstance(scheduler.backend.cache[("regex", "(a")], InvalidGrammarObject)


def test_a_token_outside_of_the_grammar_fails_its_request_only(scheduler: SmallScheduler) -> None:
    """Should something sample past the mask, SGLang aborts the request with ffwd's text."""
    wrong, right = (scheduler.request(name, regex=DATE) for name in ("wrong", "right"))
    scheduler.admit([wrong, right])
    x = scheduler.tokenizer.encode("x")
    scheduler.commit(wrong, x)
    scheduler.run([wrong, right])
    assert f"refuses token {x[0]} (b'x') at position 0" in abort_text(wrong)
    assert re.fullmatch(DATE, scheduler.text(right))


@pytest.mark.parametrize("token", [639, 640, 10**9, -1])
def test_tokens_that_are_none(scheduler: SmallScheduler, token: int) -> None:
    """Padding of the output layer and numbers outside of it."""
    (req,) = scheduler.admit([scheduler.request("r", regex=DATE)])
    with pytest.raises(ValueError, match=r"refuses token .*no text"):
        req.grammar.accept_token(token)
    assert req.grammar.num_tokens == 0
