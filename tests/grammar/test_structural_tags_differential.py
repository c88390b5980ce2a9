"""Structural tags beside XGrammar, on texts and on texts that differ from them in a few places.

Where they differ is listed, with the reason.
"""

import itertools

import pytest
from recognise import accepts
from structuraltags import CASES, triggered
from tagpeers import Peer, variants
from xgrammar import builtin_structural_tag as builtin

import ffwd

NUMBER = 120

# Texts on which XGrammar errs, and what it does.
DIFFERENCES = {
    # XGrammar does not see the trigger `b` while it is reading `abc`, so that `abx` is free text.
    "dispatch, inside": ["abx", "2abx\n2abc1"],
    # Its strings with lengths may have the closing tag in them.
    "qwen_xml, nested": ["<parameter=u>ab</parameter></parameter>"],
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_texts_belong_to_a_tag(name: str) -> None:
    """To what it is read as, by the slow recogniser, and to what XGrammar makes of it."""
    form, texts = CASES[name]
    grammar = ffwd.structural_tag({"type": "structural_tag", "format": form})
    peer = Peer(form)
    tried = set(variants(texts, 7, NUMBER))
    found = [text for text in tried if accepts(grammar, text) != peer.accepts(text)]
    if name not in DIFFERENCES:
        assert found == []
    # Only XGrammar lets more through, in the cases that are listed.
    assert not [text for text in found if not peer.accepts(text)]
    for text in DIFFERENCES.get(name, []):
        assert peer.accepts(text)
        assert not accepts(grammar, text)


def test_random_texts_of_triggers() -> None:
    """All short texts over the letters of the triggers."""
    form = triggered(excludes=["qf"])
    grammar = ffwd.structural_tag({"type": "structural_tag", "format": form})
    peer = Peer(form)
    pieces = ["<f1>q</f>", "<f2>", "</f>", "</g>", "<", "f", "q", "x"]
    texts = [a + b + c for a in pieces for b in pieces for c in pieces]
    assert [text for text in texts if accepts(grammar, text) != peer.accepts(text)] == []


PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "unit": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
        "place": {"type": "object", "properties": {"x": {"type": "number"}}},
    },
    "required": ["city"],
}
TOOLS = [
    {"type": "function", "function": {"name": name, "strict": True, "parameters": parameters}}
    for name, parameters in (("add", PARAMETERS), ("none", {"type": "object", "properties": {}}))
]


@pytest.mark.parametrize("model", sorted(builtin._structural_tag_registry))
def test_what_xgrammar_writes_for_each_model_is_read(model: str) -> None:
    """For all choices of tools, with and without reasoning."""
    choices = ["auto", "required", "none", {"type": "function", "function": {"name": "add"}}]
    for choice, reasoning, excluding, any_order in itertools.product(
        choices, ("enabled", "disabled", "auto"), (True, False), (False, True)
    ):
        tag = builtin.get_model_structural_tag(
            model,
            TOOLS,
            choice,
            reasoning,
            exclude_special_tokens=excluding,
            any_order=any_order,
        )
        assert ffwd.structural_tag(tag.model_dump_json())
