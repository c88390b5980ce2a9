"""Texts that stop at tokens and strings, against a search in the whole text."""

from typing import Any

import pytest
import realtokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import decoder_of

import ffwd
from ffwd.streaming import (
    Decoder,
    Held,
    Stopped,
    StoppedWithText,
    StopSequenceDecoder,
    StopSequenceError,
    Text,
)


def characters(text: str, *more: bytes) -> Decoder:
    """A token for each character of a text, and more."""
    return Decoder([*(c.encode() for c in text), *more])


def pieces(text: str, size: int) -> Decoder:
    """A text as tokens of so many bytes."""
    data = text.encode()
    return Decoder([data[at : at + size] for at in range(0, len(data), size)])


def shown(decoder: StopSequenceDecoder, ids: list[int]) -> tuple[str, int | str | None]:
    """All that is shown, and what stopped it."""
    text = "".join(decoder.step(i).text for i in ids)
    return text + decoder.flush().text, decoder.matched


def searched(text: str, hidden: list[str], visible: list[str]) -> tuple[str, str | None]:
    """The same, by looking at each end in turn for the longest stop that ends there."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in (*hidden, *visible) if text[:end].endswith(stop)]
        if found:
            stop = max(found, key=lambda stop: len(stop.encode()))
            return text[: end if stop in visible else end - len(stop)], stop
    return text, None


def must_hold(text: str, stops: list[str]) -> int:
    """How much at the end of a text may become a stop."""
    begins = {stop[:n] for stop in stops for n in range(len(stop))}
    return max((len(begin) for begin in begins if text.endswith(begin)), default=0)


@pytest.mark.parametrize("size", range(1, 12))
@pytest.mark.parametrize(
    ("text", "stops", "expected", "matched"),
    [
        ("say hello world", ["world", "hello"], "say ", "hello"),
        ("abcd", ["abcd", "bc"], "a", "bc"),
        ("xabc", ["bc", "abc"], "x", "abc"),
        ("xabc", ["abc", "ab"], "x", "ab"),
        ("aaab", ["aab"], "a", "aab"),
        ("\u4e16\u754c \u9f98\u9750\u9f49", ["\u9750"], "\u4e16\u754c \u9f98", "\u9750"),
        ("\u4e16\u754c\u4e16\u9f49", ["\u4e16\u9f49"], "\u4e16\u754c", "\u4e16\u9f49"),
        ("a \ufffd b", ["\ufffd"], "a ", "\ufffd"),
        ("no stop\n\nHuma", ["\n\nHuman:"], "no stop\n\nHuma", None),
    ],
)
def test_the_stop_that_ends_first_wins(
    size: int, text: str, stops: list[str], expected: str, matched: str | None
) -> None:
    """Whatever the order of the stops, and however the text is cut into tokens."""
    tokens = pieces(text, size)
    ids = list(range(tokens.vocab_size))
    for listed in (stops, stops[::-1]):
        decoder = StopSequenceDecoder(tokens, stop_strings=listed)
        assert shown(decoder, ids) == (expected, matched)
        visible = StopSequenceDecoder(tokens, visible_stop_strings=listed)
        assert shown(visible, ids) == (expected + (matched or ""), matched)


_TEXT = st.text(alphabet="ab\u4e16\ufffd", max_size=12)
_STOPS = st.lists(st.text(alphabet="ab\u4e16\ufffd", min_size=1, max_size=4), max_size=3)


@given(_TEXT, _STOPS, _STOPS, st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=400)
def test_every_cut(text: str, hidden: list[str], visible: list[str], size: int, n: int) -> None:
    """What is shown is that of a search, as early as it can be; in batches too."""
    visible = [stop for stop in visible if stop not in hidden]
    tokens = pieces(text, size)
    ids = list(range(tokens.vocab_size))
    stops: dict[str, Any] = {"stop_strings": hidden, "visible_stop_strings": visible}
    decoder = StopSequenceDecoder(tokens, **stops)
    expected, matched = searched(text, hidden, visible)
    out = ""
    for i in ids:
        step = decoder.step(i)
        out += step.text
        if not step.stopped:
            now = tokens.decode(ids[: i + 1]).removesuffix(decoder.pending.decode(errors="replace"))
            held = must_hold(now, hidden + visible)
            assert (out, decoder.held) == (now[: len(now) - held], now[len(now) - held :])
    assert out + decoder.flush().text == expected
    assert decoder.matched == matched
    batches = StopSequenceDecoder(tokens, **stops)
    parts = [batches.step_batch(ids[at : at + n]).text for at in range(0, len(ids), n)]
    assert ("".join(parts) + batches.flush().text, batches.matched) == (expected, matched)


@given(st.lists(st.binary(max_size=3), max_size=6), _STOPS)
def test_malformed_bytes_are_searched_as_they_are_shown(
    tokens: list[bytes], hidden: list[str]
) -> None:
    decoder = Decoder(tokens)
    ids = list(range(len(tokens)))
    found = shown(StopSequenceDecoder(decoder, stop_strings=hidden), ids)
    assert found == searched(decoder.decode(ids), hidden, [])


def test_outputs() -> None:
    decoder = StopSequenceDecoder(characters("ab<|x"), stop_strings=["<|"])
    outputs = [decoder.step(i) for i in (0, 2, 1, 2, 3, 4)]
    assert outputs == [Text("a"), Held(), Text("<b"), Held(), Stopped(), Stopped()]
    assert decoder.stopped
    assert decoder.num_tokens == 5
    assert decoder.flush() == Stopped()
    decoder.reset()
    assert not decoder.stopped
    assert decoder.matched is None
    assert decoder.step_batch([0, 1, 2, 3, 0]) == StoppedWithText("ab")
    assert decoder.num_tokens == 4


def test_outputs_are_values() -> None:
    assert Text("a") == Text("a") != Text("b")
    assert Text("a") != StoppedWithText("a")
    assert Held() == Held() != Stopped()
    assert len({Text("a"), Text("a"), StoppedWithText("a"), Held(), Held(), Stopped()}) == 3 + 1
    assert repr((Text("a"), StoppedWithText("'"), Held(), Stopped())) == (
        "(Text('a'), StoppedWithText(\"'\"), Held(), Stopped())"
    )
    match Text("a"):
        case Text(text):
            assert text == "a"
    flags = [output.stopped for output in (Text("a"), Held(), StoppedWithText("a"), Stopped())]
    assert flags == [False, False, True, True]


def test_a_fork_goes_on_by_itself() -> None:
    decoder = StopSequenceDecoder(characters("abc"), stop_strings=["ab"])
    assert decoder.step(0) == Held()
    fork = decoder.fork()
    assert (decoder.step(1), fork.step(2)) == (Stopped(), Text("ac"))
    assert (decoder.matched, fork.matched) == ("ab", None)


def test_no_stops_hold_nothing() -> None:
    decoder = StopSequenceDecoder(characters("ab"))
    assert [decoder.step(i) for i in (0, 1)] == [Text("a"), Text("b")]
    assert decoder.flush() == Held()


def test_flush_gives_up_what_is_held() -> None:
    decoder = StopSequenceDecoder(characters("ab", b"\xe4\xb8"), stop_strings=["abc", "\ufffd!"])
    assert decoder.step_batch([0, 1]) == Held()
    assert decoder.held == "ab"
    assert decoder.step(2) == Held()
    assert decoder.pending == b"\xe4\xb8"
    assert decoder.flush() == Text("ab\ufffd")
    assert decoder.held == ""
    assert decoder.num_tokens == 0
    assert decoder.step(0) == Held()


def test_a_character_that_does_not_go_on_may_stop() -> None:
    decoder = StopSequenceDecoder(characters("a", b"\xe4"), stop_strings=["\ufffd"])
    assert decoder.step_batch([0, 1]) == Text("a")
    assert decoder.flush() == Stopped()
    assert decoder.matched == "\ufffd"


def test_stop_tokens() -> None:
    """They stop where they begin, hidden or visible, even if they are special."""
    tokens = Decoder([b"<s>", b"a<", b"b", b"</s>", b"\xe4\xb8"], special=[0, 3])
    options: dict[str, Any] = {"stop_tokens": [0, 2], "visible_stop_tokens": [3]}
    decoder = StopSequenceDecoder(tokens, stop_strings=["<b", "</s"], **options)
    for stop, expected in [(0, "<"), (2, "<"), (3, "<</s>")]:
        assert decoder.step(1) == Text("a")
        assert decoder.step(stop) == StoppedWithText(expected)
        assert decoder.matched == stop
        decoder.reset()
    assert decoder.step_batch([4, 0]) == StoppedWithText("\ufffd")
    decoder.reset()
    assert decoder.step(0) == Stopped()


def test_the_name_of_a_special_token_is_a_stop_string() -> None:
    """Where special tokens are left out, the text never has it."""
    name = "<|eot_id|>"
    real = realtokenizers.load("llama3").tokenizer
    ids = real.encode("Hello<|eot_id|> more", add_special_tokens=False).ids
    for skip in (True, False):
        decoder = StopSequenceDecoder(
            decoder_of("llama3"), stop_strings=[name], skip_special_tokens=skip
        )
        assert shown(decoder, ids) == ("Hello", name)
        visible = StopSequenceDecoder(
            decoder_of("llama3"), visible_stop_strings=[name], skip_special_tokens=skip
        )
        assert shown(visible, ids) == ("Hello" + name, name)


@pytest.mark.parametrize("name", ["llama3", "mistral-v3"])
def test_real_tokenizers(name: str) -> None:
    text = 'The answer:\n\n```json\n{"\u4e16": 1}\n```\n\nHuman: \u9f98\u9750\u9f49 and more'
    ids = realtokenizers.load(name).tokenizer.encode(text).ids
    for stops in (["\n\nHuman:"], ["```\n\n", "Human"], ["\u9750"], ["\n\nAssistant:"], ["T"]):
        found = shown(StopSequenceDecoder(decoder_of(name), stop_strings=stops), ids)
        assert found == searched(text, stops, [])


def test_a_prompt_is_not_searched() -> None:
    decoder = StopSequenceDecoder(characters("ab"), stop_strings=["ab"], prompt_ids=[0])
    assert decoder.step(1) == Text("b")


@pytest.mark.parametrize("which", ["stop_strings", "visible_stop_strings"])
def test_an_empty_stop_string_is_refused(which: str) -> None:
    with pytest.raises(StopSequenceError, match=r"stop string 1 is empty") as raised:
        StopSequenceDecoder(characters("a"), **{which: ["a", ""]})
    assert raised.value.index == 1


def test_stops_that_cannot_be_used() -> None:
    tokens = characters("ab")
    with pytest.raises(StopSequenceError, match="both a hidden and a visible") as raised:
        StopSequenceDecoder(tokens, stop_strings=["a"], visible_stop_strings=["b", "a"])
    assert raised.value.index == 1
    with pytest.raises(StopSequenceError, match="token 1 is both"):
        StopSequenceDecoder(tokens, stop_tokens=[1], visible_stop_tokens=[1])
    with pytest.raises(ffwd.TokenError, match="token 2 is outside"):
        StopSequenceDecoder(tokens, stop_tokens=[2])
    with pytest.raises(ffwd.LimitExceededError, match="stop_string_bytes") as limit:
        StopSequenceDecoder(tokens, stop_strings=["ab" * 40_000])
    assert limit.value.maximum == 65_536
    with pytest.raises(TypeError):
        StopSequenceDecoder(tokens, stop_strings="ab")
    for stops in ("stop_strings", "visible_stop_strings"):
        with pytest.raises(
            StopSequenceError, match="string 1 has a lone surrogate at index 2"
        ) as of:
            StopSequenceDecoder(tokens, **{stops: ["b", "ab\ud800"]})
        assert of.value.index == 1


def test_unknown_ids_change_nothing() -> None:
    decoder = StopSequenceDecoder(characters("ab"), stop_strings=["ab"])
    assert decoder.step(0) == Held()
    for call in (decoder.step, lambda i: decoder.step_batch([1, i])):
        with pytest.raises(ffwd.TokenError, match="7"):
            call(7)
    assert decoder.step(1) == Stopped()
