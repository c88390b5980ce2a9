"""Where a prompt ends and a grammar begins, with six real tokenizers.

The measure is the tokenizer itself: the prompt with the finished answer in it, encoded as a whole.
Its ids are the prompt's ids (less those that were taken back) and then ids that the matcher allows.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from realtokenizers import load, package_file

import ffwd
import ffwd.tokenizer
from ffwd.chat import (
    ControlPart,
    EndTokenError,
    Part,
    PrefillError,
    Prompt,
    TextPart,
    ThinkingSection,
)
from ffwd.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parents[2]

SEQUENCES = {
    "llama3": (
        "<|begin_of_text|>",
        "<|start_header_id|>",
        "~user",
        "<|end_header_id|>",
        "~\n\nWho?",
        "<|eot_id|>",
        "<|start_header_id|>",
        "~assistant",
        "<|end_header_id|>",
        "~\n\n",
    ),
    "qwen": (
        "<|im_start|>",
        "~user\nWho?",
        "<|im_end|>",
        "~\n",
        "<|im_start|>",
        "~assistant\n",
    ),
    "deepseek": (
        "<\uff5cbegin▁of▁sentence\uff5c>",
        "<\uff5cUser\uff5c>",
        "~Who?",
        "<\uff5cAssistant\uff5c>",
    ),
    "tekken": ("<s>", "[INST]", "~Who?", "[/INST]"),
    "mistral-v3": ("<s>", "[INST]", "~Who?", "[/INST]"),
    "gpt2": ("~User: Who?\nAssistant:",),
}
"""What a prompt consists of in each format; text begins with ~."""

ENDS = {
    "llama3": ("<|eot_id|>", "<|end_of_text|>"),
    "qwen": ("<|im_end|>", "<|endoftext|>"),
    "deepseek": ("<\uff5cend▁of▁sentence\uff5c>",),
    "tekken": ("</s>",),
    "mistral-v3": ("</s>",),
    "gpt2": ("<|endoftext|>",),
}


@dataclass(frozen=True)
class Setting:
    """A tokenizer, its vocabulary, and how a conversation is written for it."""

    name: str
    tokenizer: Tokenizer
    vocabulary: ffwd.Vocabulary
    ends: tuple[int, ...]

    def prompt(self, prefill: str = "", **extra: Any) -> Prompt:
        parts: list[Part] = [self._part(piece) for piece in SEQUENCES[self.name]]
        if prefill:
            parts.append(TextPart(prefill, 1))
        return Prompt(
            parts=tuple(parts),
            tokenizer=self.tokenizer,
            # Each message of Mistral's is encoded by itself.
            part_ids=tuple(self._own_ids(part) for part in parts) if self.own else None,
            end_token_ids=self.ends,
            prefill=prefill,
            generation_start=True,
            **extra,
        )

    @property
    def own(self) -> bool:
        return self.name == "mistral-v3"

    def _part(self, piece: str) -> Part:
        return TextPart(piece[1:]) if piece.startswith("~") else self.control(piece)

    def control(self, name: str) -> ControlPart:
        return ControlPart(self.id_of(name), name)

    def id_of(self, name: str) -> int:
        token_id = self.tokenizer.token_to_id(name)
        assert token_id is not None, name
        return token_id

    def _own_ids(self, part: Part) -> tuple[int, ...]:
        if isinstance(part, ControlPart):
            return (part.token_id,)
        return tuple(self.tokenizer.encode_parts([part.text]))

    def whole(self, answer: str) -> list[int]:
        """The ids of the prompt with the finished answer, by the tokenizer itself."""
        return self.prompt(answer).ids


@cache
def setting(name: str) -> Setting:
    if name == "tekken":
        tokenizer = ffwd.tokenizer.load(
            package_file("mistral_common", "data", "tekken_240911.json")
        )
    elif name == "mistral-v3":
        tokenizer = ffwd.tokenizer.load(
            package_file("mistral_common", "data", "mistral_instruct_tokenizer_240323.model.v3")
        )
    else:
        tokenizer = ffwd.tokenizer.load(load(name).tokenizer)
    ends = []
    for end in ENDS[name]:
        token_id = tokenizer.token_to_id(end)
        assert token_id is not None
        ends.append(token_id)
    ends.sort()
    return Setting(name, tokenizer, tokenizer.vocabulary(eos_token_ids=ends), tuple(ends))


def documents(seed: int, count: int) -> Iterator[tuple[Any, str, Any]]:
    """A schema, a valid text and what it means."""
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    source = random.Random(seed)
    found = 0
    while found < count:
        line = json.loads(source.choice(lines))
        valid = [test["data"] for test in line["tests"] if test["valid"]]
        if not valid or len(json.dumps(valid[0])) > 400:
            continue
        found += 1
        separators = source.choice([(",", ":"), (", ", ": ")])
        data = source.choice(valid)
        yield line["schema"], json.dumps(data, ensure_ascii=False, separators=separators), data


def grammar_of(schema: Any, setting: Setting) -> ffwd.CompiledGrammar | None:
    """None for schemas that ffwd does not support."""
    description = ffwd.json_schema(json.dumps(schema), property_order="any")
    try:
        return ffwd.compile(description, setting.vocabulary)
    except ffwd.UnsupportedSchemaError:
        return None


def follow(start: Any, expected: list[int], end: int) -> str | None:
    """Why the matcher does not follow the expected ids; None if it does, to the end."""
    matcher = start.matcher()
    for place, token in enumerate(expected):
        forced = matcher.fast_forward_tokens()
        if forced != expected[place : place + len(forced)]:
            return f"forced {forced} where {expected[place : place + len(forced)]} come"
        if not matcher.accept_token(token):
            return f"{token} at {place} is not allowed"
    if not matcher.is_accepting() or end not in matcher.allowed_token_ids():
        return "the answer may not end"
    return None


# GPT-2 has no control tokens: its prompt ends in text, `Assistant:`, and a colon and a brace may be
# one token. What the prompt has is not encoded again, so there the two parts keep their own cut.
MERGES_WITH_THE_PROMPT = "gpt2"


@pytest.mark.parametrize("name", SEQUENCES)
def test_an_answer_goes_on_as_the_tokenizer_itself_would(name: str) -> None:
    """With nothing prefilled: the prompt's ids stay, and the answer's are those of the whole."""
    place = setting(name)
    followed = merged = 0
    for schema, text, _ in documents(1, 16):
        grammar = grammar_of(schema, place)
        if grammar is None:
            continue
        start = place.prompt().start(grammar)
        assert list(start.prompt_ids) == place.prompt().ids
        assert start.taken_back == ()
        whole = place.whole(text)
        if whole[: len(start.prompt_ids)] != list(start.prompt_ids):
            assert name == MERGES_WITH_THE_PROMPT
            merged += 1
            own = place.tokenizer.encode(text)
        else:
            own = whole[len(start.prompt_ids) :]
        assert follow(start, own, place.ends[0]) is None, (text, own)
        answer = start.answer([*own, place.ends[0], place.ends[0]])
        assert (answer.text, answer.complete, answer.reasoning) == (text, True, "")
        followed += 1
    assert followed >= 12
    assert (merged > 0) == (name == MERGES_WITH_THE_PROMPT)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_prefilled_answer_goes_on_wherever_it_was_cut(name: str) -> None:
    """Cut anywhere, also inside words."""
    place = setting(name)
    source = random.Random(2)
    cuts = rolled_back = most = 0
    for schema, text, data in documents(3, 16):
        grammar = grammar_of(schema, place)
        if grammar is None:
            continue
        whole = place.whole(text)
        for cut in {source.randrange(1, len(text) + 1) for _ in range(6)} | {len(text)}:
            prompt = place.prompt(text[:cut])
            start = prompt.start(grammar)
            kept = list(start.prompt_ids)
            assert prompt.ids == kept + list(start.taken_back)
            cuts += 1
            rolled_back += bool(start.taken_back)
            most = max(most, len(start.taken_back))
            assert whole[: len(kept)] == kept, (text, cut)
            own = whole[len(kept) :]
            assert follow(start, own, place.ends[0]) is None, (text, cut)
            # Less may be taken back; then the text is right, and its cut may be another one.
            few = prompt.start(grammar, max_rollback=source.randrange(3))
            matcher = few.matcher()
            rest = bytes_as_ids(place, few.prefix + text[cut:].encode())
            assert matcher.accept_tokens(rest)
            assert matcher.is_accepting()
            assert few.answer(rest).text == text
            answer = start.answer([*own, place.ends[-1]])
            assert (answer.text, answer.complete) == (text, True)
            assert json.loads(answer.text) == data
            # What has come of it at any time.
            for count in range(len(own)):
                assert text.startswith(start.answer(own[:count]).text.rstrip("\ufffd"))
    assert cuts > 70
    assert rolled_back > cuts / 10
    assert most <= 6


def bytes_as_ids(place: Setting, data: bytes) -> list[int]:
    """Ids with these bytes, a byte each."""
    single = {
        place.vocabulary.token_bytes(i): i for i in reversed(range(place.vocabulary.vocab_size))
    }
    return [single[bytes((byte,))] for byte in data]


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_prefill_is_taken_back_in_the_tokens_of_the_text_only(name: str) -> None:
    """Never past a control token, however much is asked for."""
    place = setting(name)
    grammar = ffwd.compile(ffwd.regex(r"[a-z ]*"), place.vocabulary)
    for limit in range(6):
        start = place.prompt("a b").start(grammar, max_rollback=limit)
        assert len(start.taken_back) <= limit
        for token in start.taken_back:
            assert place.vocabulary.token_bytes(token) is not None
        before = place.prompt().ids
        if name != "gpt2":
            texts = [i for i, piece in enumerate(SEQUENCES[name]) if piece.startswith("~")]
            ends_in_text = texts[-1] == len(SEQUENCES[name]) - 1
            assert len(start.prompt_ids) >= len(before) - (1 if ends_in_text else 0)


def test_the_space_of_sentencepiece_comes_first_and_is_no_part_of_the_answer() -> None:
    place = setting("mistral-v3")
    grammar = ffwd.compile(ffwd.json_schema('{"type": "object"}'), place.vocabulary)
    start = place.prompt().start(grammar)
    assert start.prefix == b" "
    first = place.tokenizer.encode('{"a": 1}')
    assert place.vocabulary.token_bytes(first[0]) == b' {"'
    assert follow(start, first, place.ends[0]) is None
    assert start.answer(first).text == '{"a": 1}'
    # Exactly one, and none at all where it is not wanted.
    spaces = [
        i
        for i in range(place.vocabulary.vocab_size)
        if (place.vocabulary.token_bytes(i) or b"").startswith(b"  ")
    ]
    assert not set(start.matcher().allowed_token_ids()) & set(spaces)
    without = place.prompt().start(grammar, leading_space=False)
    assert without.prefix == b""
    assert not without.matcher().accept_token(first[0])
    for other in ("llama3", "qwen", "deepseek", "tekken", "gpt2"):
        elsewhere = setting(other)
        grammar = ffwd.compile(ffwd.json_schema('{"type": "object"}'), elsewhere.vocabulary)
        assert elsewhere.prompt().start(grammar).prefix == b""


@pytest.mark.parametrize("name", ["qwen", "deepseek", "llama3", "mistral-v3"])
@pytest.mark.parametrize("answer_prefix", ["", "\n\n"])
def test_the_grammar_waits_until_the_reasoning_is_closed(name: str, answer_prefix: str) -> None:
    """By a control token where the vocabulary has one, by text where it spells it."""
    place = setting(name)
    grammar = ffwd.compile(
        ffwd.json_schema('{"enum": [{"a": 1}]}', whitespace="compact"), place.vocabulary
    )
    close = place.tokenizer.token_to_id("</think>")
    thinking = ThinkingSection("<think>", "</think>", close, answer_prefix=answer_prefix)
    start = place.prompt(thinking=thinking).start(grammar)
    matcher = start.matcher()
    encode = place.tokenizer.encode
    reasoning = 'Hm, {"a": 2}? </thin k> No.'
    thought = encode(reasoning)
    for token in thought:
        assert matcher.fast_forward_tokens() == []
        assert token in matcher.allowed_token_ids()
        assert not matcher.accept_token(place.ends[0])
        assert matcher.accept_token(token)
    space = " " if start.prefix.startswith(b" ") else ""
    assert bool(space) == (name == "mistral-v3" and close is not None)
    closing = encode("</think>") if close is None else [close]
    tail = encode(space + answer_prefix + '{"a":1}')
    if space:
        tail = tail[1:] if place.vocabulary.token_bytes(tail[0]) == b" " else tail
    assert matcher.accept_tokens([*closing])
    assert matcher.forced_bytes().startswith((space + answer_prefix + '{"a"').encode())
    forced = matcher.fast_forward_tokens()
    # Letters that spell the close may be others together with what follows.
    assert forced or close is None
    spelled = b"".join(place.vocabulary.token_bytes(i) or b"" for i in forced)
    assert (space + answer_prefix + '{"a":1}').encode().startswith(spelled[:3])
    rest = bytes_as_ids(place, (space + answer_prefix + '{"a":1}').encode())
    assert matcher.accept_tokens(rest)
    assert matcher.is_accepting()
    answer = start.answer([*thought, *closing, *rest, place.ends[0]])
    assert answer.text == '{"a":1}'
    assert answer.reasoning.strip() == reasoning
    assert answer.complete
    # Back into the reasoning, and forth again.
    matcher.rollback(len(rest) + len(closing))
    assert not matcher.is_accepting()
    assert matcher.accept_tokens([*encode(" So."), *closing, *rest, place.ends[0]])


def test_reasoning_in_channels_ends_where_the_last_one_begins() -> None:
    """As gpt-oss writes it: several messages, and the answer in the channel `final`."""
    place = setting("llama3")
    begin, end, channel, message = (
        place.id_of(f"<|reserved_special_token_{n}|>") for n in (1, 2, 3, 4)
    )
    encode = place.tokenizer.encode
    close = (channel, *encode("final"), message)
    thinking = ThinkingSection(
        "", "<|channel|>final<|message|>", None, close, control_token_ids=(begin, end)
    )
    grammar = ffwd.compile(ffwd.choice(["yes", "no"]), place.vocabulary)
    start = place.prompt(thinking=thinking).start(grammar)
    thought = [
        *[channel, *encode("analysis"), message, *encode("So final?"), end],
        *[begin, *encode("assistant")],
    ]
    answer = [*thought, *close, *encode("yes")]
    assert follow(start, answer, place.ends[0]) is None
    assert start.answer([*answer, place.ends[0]]).text == "yes"
    assert start.answer(thought).text == ""
    assert "So final?" in start.answer(answer).reasoning
    other = place.id_of("<|reserved_special_token_9|>")
    assert not start.matcher().accept_token(other)


def test_a_close_that_ends_within_a_token_is_seen() -> None:
    """`>\\n\\n` is one token in Llama 3: what comes after the close belongs to the answer."""
    place = setting("llama3")
    grammar = ffwd.compile(ffwd.choice(["yes", "no"]), place.vocabulary)
    thinking = ThinkingSection("<think>", "</think>", None, answer_prefix="\n\n")
    start = place.prompt(thinking=thinking).start(grammar)
    ids = place.tokenizer.encode("So?\n</think>\n\nyes")
    assert b">\n\n" in [place.vocabulary.token_bytes(i) for i in ids]
    assert follow(start, ids, place.ends[0]) is None
    assert start.answer(ids) == start.answer(ids)
    assert (start.answer(ids).text, start.answer(ids).reasoning) == ("yes", "So?\n")
    wrong = place.tokenizer.encode("So?\n</think>\n\n\n")
    matcher = start.matcher()
    assert matcher.validate_tokens(wrong) == len(wrong) - 1
    assert not matcher.accept_tokens(wrong)


def test_the_wrong_prefill_is_refused_with_its_place() -> None:
    place = setting("qwen")
    grammar = ffwd.compile(
        ffwd.json_schema('{"properties": {"a": {"type": "integer"}}, "type": "object"}'),
        place.vocabulary,
    )
    with pytest.raises(PrefillError, match="byte 5") as caught:
        place.prompt('{"a":"x').start(grammar)
    assert caught.value.byte == 5
    assert "'\"x'" in str(caught.value)


def test_end_tokens_that_the_vocabulary_lacks_are_named() -> None:
    place = setting("qwen")
    vocabulary = place.tokenizer.vocabulary(eos_token_ids=place.ends[:1])
    grammar = ffwd.compile(ffwd.regex("a"), vocabulary)
    with pytest.raises(EndTokenError, match=str(place.ends[1])) as caught:
        place.prompt().start(grammar)
    assert caught.value.token_ids == place.ends[1:]
