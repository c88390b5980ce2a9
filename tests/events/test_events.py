"""Events: what becomes certain of the spans of a text, beside slow readings of all of it."""

import random

import pytest
from following import END, Consumer, byte_vocabulary, compiled, follow, pieces, texts
from parses import captures

import ffwd
from ffwd.grammar import Grammar

SEEDS = range(150)


def draw(rng: random.Random, depth: int, names: list[str]) -> Grammar:
    """A small grammar of the letters a and b, with captures."""
    kind = rng.choice(["text", "regex", "seq", "choice", "repeat", "capture", "capture", "rule"])
    if depth == 0 or kind == "text":
        return ffwd.lit(rng.choice(["a", "b", "ab", "ba"]))
    if kind == "regex":
        return ffwd.regex(rng.choice(["a+", "b*", "[ab]", "a|ab", "(ab)+"]))
    if kind == "capture":
        return ffwd.capture(rng.choice("xyz"), draw(rng, depth - 1, names))
    if kind == "seq":
        return ffwd.seq(*(draw(rng, depth - 1, names) for _ in range(rng.randint(2, 3))))
    if kind == "choice":
        return ffwd.choice([draw(rng, depth - 1, names) for _ in range(rng.randint(2, 3))])
    if kind == "repeat":
        least = rng.randint(0, 2)
        most = rng.choice([None, least + rng.randint(0, 2)])
        return ffwd.repeat(draw(rng, depth - 1, names), least, most)
    # Never at the beginning of a rule.
    return ffwd.seq(rng.choice("ab"), ffwd.rule(rng.choice(names)))


def grammars() -> list[Grammar]:
    drawn = []
    for seed in SEEDS:
        rng = random.Random(seed)
        names = ["start", "other"]
        rules = {
            name: ffwd.choice([draw(rng, 3, names), "a", ffwd.capture("r", "b")]) for name in names
        }
        drawn.append(ffwd.rules(rules, start="start"))
    return drawn


def test_captures_are_those_of_a_reading() -> None:
    """Of all readings that a slow parser finds; mostly there is one."""
    alone = several = 0
    for seed, grammar in enumerate(grammars()):
        rng = random.Random(seed)
        for _ in range(25):
            text = "".join(rng.choice("ab") for _ in range(rng.randint(0, 7)))
            expected = captures(grammar, text)
            if not expected:
                continue
            consumer = follow(grammar, text, once=True)
            found = tuple(
                (span.name, span.start, span.end) for span in consumer.spans() if span.text
            )
            assert found in expected, (grammar, text)
            alone += len(expected) == 1
            several += len(expected) > 1
    assert alone > 300
    assert several > 60


def test_cuts_change_deltas_only() -> None:
    """Whenever events are asked for, the same spans are reported in the same order."""
    for seed, grammar in enumerate(grammars()):
        rng = random.Random(seed)
        for _ in range(10):
            text = "".join(rng.choice("ab") for _ in range(rng.randint(0, 9)))
            if not captures(grammar, text):
                continue
            whole = follow(grammar, text, once=True)
            for cut in (None, rng):
                consumer = follow(grammar, text, cut)
                assert consumer.spans() == whole.spans()
                assert consumer.order() == whole.order()


def test_what_is_taken_back_is_retracted() -> None:
    """After any rollbacks the events are those of a matcher that never took anything back."""
    for seed, grammar in enumerate(grammars()[:60]):
        rng = random.Random(seed)
        matcher, consumer = compiled(grammar).matcher(), Consumer()
        for _ in range(40):
            allowed = [token for token in matcher.allowed_token_ids() if token != END]
            if allowed and rng.random() < 0.7:
                matcher.accept_token(rng.choice(allowed))
            else:
                matcher.rollback(rng.randint(0, matcher.num_tokens))
            if rng.random() < 0.5:
                consumer.take(matcher.events())
                consumer.spans()
            if rng.random() < 0.1:
                matcher = matcher.fork()
        consumer.take(matcher.events())
        fresh, again = compiled(grammar).matcher(), Consumer()
        fresh.accept_tokens(matcher.tokens)
        again.take(fresh.events())
        assert consumer.spans() == again.spans()
        assert fresh.captures() == matcher.captures()


def test_nothing_else_depends_on_events() -> None:
    """Masks, explanations and budgets are those of a matcher that is never asked."""
    for seed, grammar in enumerate(grammars()[:60]):
        rng = random.Random(seed)
        one, other = (compiled(grammar).matcher(max_tokens=30) for _ in range(2))
        for _ in range(8):
            assert one.allowed_token_ids() == other.allowed_token_ids()
            assert one.explain() == other.explain()
            assert one.shortest_completion() == other.shortest_completion()
            token = rng.choice(one.allowed_token_ids())
            one.accept_token(token)
            other.accept_token(token)
            if token == END:
                break
            one.events()
            one.captures()
        fresh = ffwd.compile(grammar, byte_vocabulary()).matcher()
        assert len(fresh.to_bytes()) > 0


def test_a_saved_text_is_reported_from_its_beginning() -> None:
    grammar = ffwd.seq(ffwd.capture("a", ffwd.regex("[a-z]+")), ";", ffwd.capture("b", "x"))
    matcher = compiled(grammar).matcher()
    matcher.accept_tokens(list(b"abc;"))
    before = matcher.events()
    loaded = ffwd.Matcher.from_bytes(matcher.to_bytes(), compiled(grammar))
    assert loaded.events() == before
    loaded.accept_tokens(list(b"x"))
    assert loaded.captures() == {"a": "abc", "b": "x"}


def test_captures_of_one_name_are_a_list() -> None:
    grammar = ffwd.repeat(ffwd.capture("w", ffwd.regex("[a-z]+")), separator=",")
    matcher = compiled(grammar).matcher()
    assert matcher.captures() == {}
    matcher.accept_tokens(list(b"ab,c"))
    assert matcher.captures() == {"w": "ab"}
    assert matcher.captures(finish=True) == {"w": ["ab", "c"]}
    matcher.accept_tokens(list(b"d,"))
    assert matcher.captures() == {"w": ["ab", "cd"]}


def test_a_text_that_was_said_to_end_may_go_on() -> None:
    """What was said of its end is retracted."""
    grammar = ffwd.capture("w", ffwd.regex("[a-z]+"))
    matcher, consumer = compiled(grammar).matcher(), Consumer()
    matcher.accept_tokens(list(b"ab"))
    consumer.take(matcher.events())
    consumer.take(matcher.events(finish=True))
    assert texts(consumer, "capture") == [("w", "ab")]
    matcher.accept_tokens(list(b"c"))
    events = matcher.events()
    assert events[0].action == "retracted"
    consumer.take(events)
    consumer.take(matcher.events(finish=True))
    assert texts(consumer, "capture") == [("w", "abc")]


def test_empty_captures() -> None:
    grammar = ffwd.seq(
        ffwd.capture("a", ffwd.regex("x*")), ";", ffwd.capture("b", ffwd.regex("y*"))
    )
    matcher = compiled(grammar).matcher()
    matcher.accept_tokens(list(b";"))
    assert matcher.captures(finish=True) == {"a": "", "b": ""}


@pytest.mark.parametrize("close", ["</think>", "é</x>"])
def test_reasoning_is_reported_as_it_comes(close: str) -> None:
    """No more of it is held back than what may be its end."""
    grammar = ffwd.reasoning(ffwd.span("content", ffwd.any_text()), close=close)
    text = f"<think>ä{close[:3]}b🙂{close}so{close[:2]}"
    matcher, consumer = compiled(grammar).matcher(), Consumer()
    data = text.encode()
    held = 0
    for at, byte in enumerate(data):
        matcher.accept_token(byte)
        consumer.take(matcher.events())
        reported = sum(len(event.text or "") for event in consumer.log if event.kind == "reasoning")
        whole = data[7 : at + 1].decode(errors="ignore")
        held = max(held, min(len(whole), len(text) - 12) - reported)
    consumer.take(matcher.events(finish=True))
    assert texts(consumer, "reasoning") == [("", f"ä{close[:3]}b🙂")]
    assert texts(consumer, "content") == [("", f"so{close[:2]}")]


def test_free_text_before_the_grammar_is_reasoning() -> None:
    grammar = ffwd.capture("answer", ffwd.regex("[0-9]+"))
    matcher = compiled(grammar).matcher(free_until=b"</think>")
    consumer = Consumer()
    for piece in pieces("so é</thi 42</think>42".encode(), random.Random(1)):
        assert matcher.accept_tokens(list(piece))
        consumer.take(matcher.events())
    consumer.take(matcher.events(finish=True))
    assert texts(consumer, "reasoning") == [("", "so é</thi 42")]
    assert texts(consumer, "capture") == [("answer", "42")]
    matcher.rollback(5)
    consumer.take(matcher.events())
    assert [span.text for span in consumer.spans()] == ["so é</thi 42"]


def test_lark_captures_stop_and_suffix() -> None:
    """What ends a lexeme is left out of its capture, or captured by itself."""
    grammar = ffwd.lark(
        """
        start: line "!" word
        line[capture="line", stop=/[.;]/, stop_capture="mark"]: /[a-z .]*/
        word[capture]: /[a-z]+/
        %ignore /[ ]+/
        """
    )
    matcher = compiled(grammar).matcher()
    assert matcher.accept_tokens(list(b"so be it; ! then"))
    assert matcher.captures(finish=True) == {"line": "so be it", "mark": ";", "word": "then"}


def test_spans_of_lark_whose_lexemes_compete() -> None:
    """A keyword and a name are told apart where the longest match ends."""
    grammar = ffwd.lark(
        """
        start: (key | name)+
        key[capture]: "if" | "in"
        name[capture]: /[a-z]+/
        %ignore /[ ]+/
        """
    )
    consumer = follow(grammar, "if iffy in x inner if")
    # What is ignored after a lexeme belongs to the rule.
    found = [(name, text.rstrip()) for name, text in texts(consumer, "capture")]
    assert [text for _, text in found] == ["if", "iffy", "in", "x", "inner", "if"]
    assert [name for name, _ in found][1::2] == ["name", "name", "key"]


def test_masks_may_be_let_go_of_between_events() -> None:
    """With hardly any memory the text is read again, and the events are the same."""
    grammar = ffwd.repeat(ffwd.capture("w", ffwd.regex("[a-z]{1,4}")), separator=",")
    small = ffwd.compile(grammar, byte_vocabulary(), limits=ffwd.Limits(memory_bytes=1))
    text = ",".join("abcd"[: 1 + at % 4] for at in range(40))
    matcher, consumer = small.matcher(), Consumer()
    for byte in text.encode():
        matcher.allowed_token_ids()
        assert matcher.accept_token(byte)
        consumer.take(matcher.events())
    consumer.take(matcher.events(finish=True))
    assert consumer.spans() == follow(grammar, text).spans()


def test_spans_of_what_begins_with_itself() -> None:
    """Around such a rule and in it they are reported; within its recursion they are refused."""
    atom = ffwd.capture("atom", ffwd.regex("[0-9]"))
    total = ffwd.rules({"sum": ffwd.rule("sum") + "+" + atom | atom})
    consumer = follow(ffwd.seq("(", ffwd.capture("sum", total), ")"), "(1+2+3)")
    assert texts(consumer, "capture") == [("sum", "1+2+3"), *(("atom", n) for n in "123")]
    within = ffwd.rules({"sum": ffwd.capture("s", ffwd.rule("sum") + "+" + atom) | atom})
    matcher = compiled(within).matcher()
    assert matcher.accept_tokens(list(b"1+2"))
    with pytest.raises(ffwd.GrammarError, match='span "s"'):
        matcher.events()
    with pytest.raises(ffwd.GrammarError, match='span "s"'):
        matcher.captures()


def test_many_readings_are_few() -> None:
    """Ambiguity that no span tells apart costs nothing, and a long text few readings."""
    nested = ffwd.rules(
        {
            "value": "(" + ffwd.rule("list") + ")" | ffwd.capture("leaf", "x") | "()",
            "list": ffwd.rule("value") | ffwd.rule("value") + "," + ffwd.rule("list"),
        }
    )
    text = "(" * 60 + "x" + ",x)" * 60
    assert len(texts(follow(nested, text, once=True), "capture")) == 61
    both = ffwd.repeat(ffwd.choice([ffwd.capture("a", ffwd.regex("x+")), "x"]))
    assert texts(follow(both, "x" * 200, once=True), "capture") == [("a", "x" * 200)]


@pytest.mark.parametrize("again", [0, 1, 3, 5])
def test_what_is_spelled_again_comes_once(again: int) -> None:
    """A prefix that the first tokens repeat is the end of what the prompt has of the text."""
    begun, rest = "a=green", ";b=red"
    grammar = ffwd.regex("a=") + ffwd.capture("first", ffwd.regex("[a-z]+"))
    grammar += ";b=" + ffwd.capture("second", ffwd.regex("[a-z]+"))
    prefix = begun[len(begun) - again :]
    matcher = compiled(grammar).matcher(prefill=begun.encode(), prefix=prefix.encode())
    spelled = prefix + rest
    for length in range(len(spelled) + 1):
        matcher.reset()
        events = []
        for token in spelled.encode()[:length]:
            assert matcher.accept_token(token)
            events += matcher.events()
        matcher.rollback(length // 2)
        assert matcher.accept_tokens(list(spelled.encode()[length - length // 2 : length]))
        events += matcher.events()
        assert matcher.accept_tokens([*spelled.encode()[length:], END])
        assert matcher.captures() == {"first": "green", "second": "red"}
        whole = compiled(grammar).matcher()
        assert whole.accept_tokens([*(begun + rest).encode(), END])
        spans = [(e.kind, e.name, e.start, e.end) for e in matcher.events(finish=True)[-1:]]
        assert spans == [(e.kind, e.name, e.start, e.end) for e in whole.events(finish=True)[-1:]]
