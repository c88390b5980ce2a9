"""Canonical tokens: what `Bpe` says of sequences, masks of canonical tokens, and cut prompts.

The judge is always the tokenizer's own encoding.
"""

import random
from collections.abc import Callable
from functools import cache

import pytest
from cases import SCHEMAS, mask_bits, parse, real_vocabulary, text_of, token_bytes
from realtokenizers import NAMES, load

import ffwd
from ffwd.tokenizer import Bpe

TOKENIZERS = ("llama3", "tekken", "qwen", "deepseek", "gpt2", "mistral-v3")

TEXTS = (
    'The quick brown fox jumps over the lazy dog.\n\n  And then,\tit slept: "zzz" (3 times)...',
    '{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"name_of": []}}',
    "def f(x):\n\t\treturn  x ** 2   # squared\r\n\r\nprint(f(12345))\n",
    "Zażółć gęślą jaźń — 北京市の天気は晴れ。 Привет, мир! 🐢🐢 naïve café\u0301",
    "    \n   1   \t\t\"a\"  I'LL don't 'S \u017f'\u017f  x\u2028y\u0345",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa===========!!!!!!!!!!??",
)

TEXTS_OF_ONE_OR_TWO = ('{"x":"the same one"}', '{"y":"the same two"}')


def bpe_of(name: str) -> Bpe:
    bpe = real_vocabulary(name).bpe
    assert isinstance(bpe, Bpe), f"{name} is compiled exactly"
    return bpe


def spelled(name: str, tokens: list[int]) -> bytes:
    pieces = token_bytes(name)
    return b"".join(pieces[token] or b"" for token in tokens)


@cache
def library(name: str) -> Callable[[bytes], list[int]]:
    return ffwd.tokenizer.text_encoder(load(name).tokenizer)


def own(name: str, data: bytes) -> list[int]:
    """The tokenizer's own encoding, by the library that it comes from."""
    return library(name)(data)


@pytest.mark.parametrize("name", NAMES)
def test_tokenizations_are_canonical_at_every_token(name: str) -> None:
    bpe = bpe_of(name)
    for text in TEXTS:
        tokens = own(name, text.encode())
        assert bpe.first_noncanonical(tokens) is None
        assert bpe.is_canonical(tokens)
        for count in range(len(tokens)):
            assert bpe.canonical_prefix(tokens[:count]) == tokens[:count]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_is_canonical_is_what_encoding_says(name: str) -> None:
    """Of sequences cut apart and put together at random: closed and prefix decisions."""
    bpe = bpe_of(name)
    rng = random.Random(7)
    pool = [own(name, text.encode()) for text in TEXTS]
    counts = {True: 0, False: 0}
    for _ in range(1500):
        one, other = rng.choice(pool), rng.choice(pool)
        at, to = rng.randrange(len(one)), rng.randrange(len(other))
        tokens = one[at : at + rng.randrange(1, 4)] + other[to : to + rng.randrange(1, 4)]
        try:
            text = spelled(name, tokens).decode()
        except UnicodeDecodeError:
            continue
        expected = own(name, text.encode()) == tokens
        assert bpe.is_canonical(tokens) == expected, (text, tokens)
        counts[expected] += 1
        bad = bpe.first_noncanonical(tokens)
        assert not (expected and bad is not None)
        assert bpe.canonical_prefix(tokens) == tokens[:bad]
        if bad is not None:
            # No text can go on so that it begins with these tokens.
            for tail in ("", "a", " ", "1", "\n", '"', " a", "\n\n", "s", "é", ".", "  x"):
                whole = (spelled(name, tokens[: bad + 1]).decode(errors="ignore") + tail).encode()
                assert own(name, whole)[: bad + 1] != tokens[: bad + 1]
    assert min(counts.values()) > 50, counts


@pytest.mark.parametrize("name", TOKENIZERS)
def test_partial_tokenization_holds_however_the_text_goes_on(name: str) -> None:
    bpe = bpe_of(name)
    rng = random.Random(11)
    covered = total = 0
    for text in TEXTS:
        for _ in range(40):
            cut = rng.randrange(1, len(text) + 1)
            data = text[:cut].encode()
            tokens, rest = bpe.tokenize_partial(data)
            assert spelled(name, tokens) + rest == data
            for tail in ("", "a", " ", "1", "\n", '"', "ing", text[cut:], "\n x", "é"):
                whole = own(name, data + tail.encode())
                assert whole[: len(tokens)] == tokens, (data, tail)
            covered += len(data) - len(rest)
            total += len(data)
    assert covered > 0.7 * total, (covered, total)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_partial_tokenization_after_recent_tokens(name: str) -> None:
    bpe = bpe_of(name)
    rng = random.Random(12)
    for text in TEXTS:
        tokens = own(name, text.encode())
        for _ in range(20):
            at = rng.randrange(1, len(tokens))
            to = rng.randrange(at, len(tokens) + 1)
            found, rest = bpe.tokenize_partial(spelled(name, tokens[at:to]), tokens[:at])
            assert tokens[at : at + len(found)] == found
            assert spelled(name, found) + rest == spelled(name, tokens[at:to])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_canonical_masks(name: str) -> None:
    """Along documents the document's own token is always offered; what is offered beside it is a
    part of the plain mask, and canonical."""
    vocabulary = real_vocabulary(name)
    bpe = bpe_of(name)
    rng = random.Random(3)
    removed = 0
    for case in SCHEMAS[::3]:
        grammar = ffwd.compile(ffwd.json_schema(case.schema), vocabulary)
        for document in case.valid:
            tokens = vocabulary.encode(text_of(document).encode())
            plain, matcher = grammar.matcher(), grammar.matcher(canonical=True)
            for at, token in enumerate(tokens):
                full, bits = mask_bits(plain), mask_bits(matcher)
                assert bits[token]
                assert not (bits & ~full).any()
                gone = (full & ~bits).nonzero()[0].tolist()
                removed += len(gone)
                kept = [int(i) for i in bits.nonzero()[0] if int(i) not in vocabulary.eos_token_ids]
                for other in rng.sample(kept, min(5, len(kept))):
                    assert bpe.first_noncanonical([*tokens[:at], other]) is None
                for other in rng.sample(gone, min(5, len(gone))):
                    path = [*tokens[:at], other]
                    if other in vocabulary.eos_token_ids or bpe.first_noncanonical(path) == at:
                        continue
                    # No text of the grammar is encoded so: the shortest is not.
                    longer = plain.fork()
                    assert longer.accept_token(other)
                    text = spelled(name, [*path, *longer.shortest_completion()])
                    assert own(name, text)[: at + 1] != path
                assert matcher.accept_token(token)
                assert plain.accept_token(token)
            assert matcher.canonical_fallbacks == {"nothing_left": 0, "lost": 0}
            assert matcher.num_noncanonical_tokens == 0
    assert removed > 1000


@pytest.mark.parametrize("name", TOKENIZERS)
def test_canonical_masks_of_one_text_are_its_own_tokens(name: str) -> None:
    """All of it is forced, so the tokenizer's encoding is the only canonical way."""
    vocabulary = real_vocabulary(name)
    texts = [*TEXTS, '{"customer_name":"', "aaaa" * 9, "status: orderId", "  x\n\n\n  y"]
    for text in texts:
        tokens = vocabulary.encode(text.encode())
        matcher = ffwd.compile(ffwd.choice([text]), vocabulary).matcher(canonical=True)
        for token in tokens:
            assert matcher.allowed_token_ids() == [token]
            assert matcher.accept_token(token)
        assert matcher.is_accepting()
        assert matcher.canonical_fallbacks == {"nothing_left": 0, "lost": 0}


def test_special_tokens_of_a_grammar_stay_in_masks() -> None:
    """Text ends before them, and begins anew after them."""
    vocabulary = real_vocabulary("llama3")
    special = 128006
    grammar = ffwd.compile(ffwd.lark(f'start: "hello," <[{special}]> "world" | "help"'), vocabulary)
    matcher = grammar.matcher(canonical=True)
    tokens = [*vocabulary.encode(b"hello,"), special, *vocabulary.encode(b"world")]
    other = vocabulary.encode(b"help")
    for at, token in enumerate(tokens):
        assert set(matcher.allowed_token_ids()) == {token, *([] if at else other[:1])}
        assert matcher.accept_token(token)
    assert matcher.is_accepting()
    assert matcher.canonical_fallbacks == {"nothing_left": 0, "lost": 0}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_dead_end_within_text_that_several_texts_begin_with(name: str) -> None:
    """What is offered within the beginning is what some of the texts are encoded with."""
    vocabulary = real_vocabulary(name)
    beginning = '{"customer_name": "The quick brown fox jumps'
    texts = [beginning + end for end in (" over", ' ov"', "1", "uit", "\n\n", "", " 日本", "\n 1")]
    encoded = [vocabulary.encode(text.encode()) for text in texts]
    grammar = ffwd.compile(ffwd.choice(texts), vocabulary)
    walked = {tuple(tokens[:at]) for tokens in encoded for at in range(len(tokens))}
    for path in sorted(walked):
        matcher = grammar.matcher(canonical=True)
        assert matcher.accept_tokens(path)
        at = len(path)
        ways = {row[at] for row in encoded if tuple(row[:at]) == path and len(row) > at}
        allowed = set(matcher.allowed_token_ids())
        assert ways <= allowed
        forced = matcher.forced_bytes()
        within = {t for t in allowed if forced.startswith(vocabulary.token_bytes(t) or b" " * 999)}
        assert within <= ways


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokens_within_characters_are_those_of_some_character(name: str) -> None:
    """Most are no piece's end, and some are in no character that the grammar has, or in none."""
    vocabulary = real_vocabulary(name)
    points = [*range(0xA0, 0x250), *range(0x3041, 0x3097), *range(0x10000, 0x10100), 0x1F422]
    ways: dict[tuple[int, ...], set[int]] = {}
    for point in points:
        tokens = own(name, f'"{chr(point)}"'.encode())
        for at, token in enumerate(tokens):
            ways.setdefault(tuple(tokens[:at]), set()).add(token)
    characters = "".join(map(chr, points))
    grammar = ffwd.compile(ffwd.regex(f'"[{characters}]"'), vocabulary)
    for path, following in ways.items():
        matcher = grammar.matcher(canonical=True)
        assert matcher.accept_tokens(path)
        assert set(matcher.allowed_token_ids()) == following, path


@pytest.mark.parametrize("name", TOKENIZERS)
def test_canonical_masks_do_not_depend_on_earlier_ones(name: str) -> None:
    """Places that were found to be live or dead are kept with the grammar."""
    vocabulary = real_vocabulary(name)
    rng = random.Random(17)
    member = {"type": "string", "pattern": "^[ä-ü !-~]*$"}
    schema = {
        "type": "object",
        "properties": {"name": member, "name_of": member, "größe": {"enum": ["klein", "groß"]}},
        "patternProperties": {"^x": {"type": "array", "items": {"type": "integer"}}},
    }
    for whitespace in ("compact", "flexible"):
        spelled_out = ffwd.json_schema(schema, whitespace=whitespace)
        used = ffwd.compile(spelled_out, vocabulary)
        for _ in range(3):
            matcher = used.matcher(canonical=True)
            for _ in range(25):
                allowed = matcher.allowed_token_ids()
                fresh = ffwd.compile(spelled_out, vocabulary).matcher(canonical=True)
                assert fresh.accept_tokens(matcher.tokens)
                assert fresh.allowed_token_ids() == allowed
                token = rng.choice(allowed)
                assert matcher.accept_token(token)
                if matcher.is_terminated():
                    break


@pytest.mark.parametrize("name", TOKENIZERS)
def test_forced_tokens_do_not_depend_on_earlier_ones(name: str) -> None:
    """A text remembers what was forced a few tokens ago, until it is rolled back before that."""
    vocabulary = real_vocabulary(name)
    rng = random.Random(23)
    names = ("kind_of_a_description", "place of birth")
    item = {
        "type": "object",
        "properties": {name: {"enum": ["considerable", "constant as ever"]} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    either = [
        {**item, "properties": {f"{part}_description": {"const": 5}}, "required": []}
        for part in ("long", "lone")
    ]
    remembered = rolled_back = 0
    for asked in ({"type": "array", "items": item, "minItems": 2}, {"anyOf": either}):
        spelled_out = ffwd.json_schema(asked, whitespace="compact")
        used = ffwd.compile(spelled_out, vocabulary)
        for look_ahead in (True, False):
            matcher = used.matcher(canonical=True)
            for _ in range(40):
                fresh = ffwd.compile(spelled_out, vocabulary).matcher(canonical=True)
                assert fresh.accept_tokens(matcher.tokens)
                forced = matcher.fast_forward_tokens(look_ahead=look_ahead)
                assert fresh.fast_forward_tokens(look_ahead=look_ahead) == forced
                if rng.random() < 0.2 and matcher.num_tokens:
                    matcher.rollback(rng.randint(1, min(6, matcher.num_tokens)))
                    rolled_back += 1
                elif len(forced) > 1 and rng.random() < 0.8:
                    matcher = matcher.fork() if rng.random() < 0.3 else matcher
                    assert matcher.accept_tokens(forced[: rng.randint(1, len(forced) - 1)])
                    remembered += 1
                else:
                    assert matcher.accept_token(rng.choice(matcher.allowed_token_ids()))
                    if matcher.is_terminated():
                        matcher = used.matcher(canonical=True)
    assert remembered > 20
    assert rolled_back > 10


def test_what_was_forced_is_forgotten_with_the_token_before_it() -> None:
    """After `x` and after `y` the same tokens are forced at first, and then others."""
    either = [
        {
            "type": "object",
            "properties": {key: {"const": value}},
            "required": [key],
            "additionalProperties": False,
        }
        for key, value in (("x", "the same one"), ("y", "the same two"))
    ]
    grammar = ffwd.compile(
        ffwd.json_schema({"anyOf": either}, whitespace="compact"), real_vocabulary("llama3")
    )
    one, two = (own("llama3", text.encode()) for text in TEXTS_OF_ONE_OR_TWO)
    assert [a == b for a, b in zip(one, two, strict=True)].count(False) == 2
    last = max(at for at, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    matcher = grammar.matcher()
    assert matcher.accept_tokens(one[:2])
    assert matcher.fast_forward_tokens() == one[2:]
    matcher.rollback(1)
    assert matcher.accept_tokens(two[1:last])
    assert matcher.fast_forward_tokens() == two[last:]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_random_walks_under_canonical_masks_are_canonical(name: str) -> None:
    vocabulary = real_vocabulary(name)
    rng = random.Random(5)
    finished = 0
    for case in SCHEMAS:
        grammar = ffwd.compile(ffwd.json_schema(case.schema, whitespace="compact"), vocabulary)
        matcher = grammar.matcher(canonical=True)
        for _ in range(60):
            allowed = matcher.allowed_token_ids()
            forced = matcher.fast_forward_tokens()
            assert not forced or forced[0] in allowed
            ends = [token for token in vocabulary.eos_token_ids if token in allowed]
            token = ends[0] if ends and rng.random() < 0.5 else rng.choice(allowed)
            assert matcher.accept_token(token)
            if matcher.is_terminated():
                break
        assert matcher.canonical_fallbacks == {"nothing_left": 0, "lost": 0}
        if not matcher.is_terminated():
            continue
        tokens = matcher.tokens[:-1]
        assert own(name, spelled(name, tokens)) == tokens
        parse(spelled(name, tokens).decode())
        finished += 1
    assert finished > 20


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_prompt_that_is_cut_heals(name: str) -> None:
    """The tokens at the cut are taken back, and what comes instead spells them first."""
    vocabulary = real_vocabulary(name)
    bpe = bpe_of(name)
    schema = {"type": "object", "properties": {"url": {"const": "http://a.b"}}, "required": ["url"]}
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    for prompt in ("The answer is ", "Answer:\n\n", 'As JSON: "', "x = ", "Result (", "\t"):
        tokens = own(name, prompt.encode())
        kept, cut = bpe.heal(tokens)
        assert kept == tokens[: len(kept)]
        assert spelled(name, kept) + cut == prompt.encode()
        matcher = grammar.matcher(recent_tokens=kept, prefix=cut)
        whole = own(name, (prompt + '{"url":"http://a.b"}').encode())
        for token in whole[len(kept) :]:
            forced = matcher.fast_forward_tokens()
            following = whole[len(kept) + matcher.num_tokens :]
            assert following[: len(forced)] == forced
            assert mask_bits(matcher)[token]
            assert matcher.accept_token(token)
        assert whole[: len(kept)] == kept
        assert matcher.is_accepting()
        matcher.rollback(matcher.num_tokens)
        assert matcher.forced_bytes().startswith(cut)


def test_a_prefix_is_spelled_first() -> None:
    vocabulary = real_vocabulary("gpt2")
    grammar = ffwd.compile(ffwd.choice(["hello", "help"]), vocabulary)
    matcher = grammar.matcher(prefix=b"say ")
    pieces = token_bytes("gpt2")
    allowed = {pieces[token] for token in matcher.allowed_token_ids()}
    assert {b"s", b"sa", b"say"} <= allowed
    assert all(
        piece and (b"say ".startswith(piece) or piece.startswith(b"say ")) for piece in allowed
    )
    assert matcher.forced_bytes() == b"say hel"
    assert not matcher.is_accepting()
    assert not matcher.accept_token(vocabulary.encode(b"x")[0])
    assert matcher.accept_tokens(vocabulary.encode(b"say help"))
    assert matcher.is_accepting()
    matcher.reset()
    assert matcher.forced_bytes() == b"say hel"


def test_a_model_that_leaves_the_canonical_way() -> None:
    """What was sampled is followed; masks and forced tokens start again from what is certain."""
    vocabulary = real_vocabulary("llama3")
    schema = {
        "type": "object",
        "properties": {"message": {"type": "string"}, "status": {"const": "fine"}},
        "required": ["message", "status"],
        "additionalProperties": False,
    }
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    matcher = grammar.matcher(canonical=True)
    for byte in b'{"message":"hello':
        assert matcher.accept_token(vocabulary.encode(bytes([byte]))[0])
    assert (matcher.num_noncanonical_tokens or 0) > 3
    assert matcher.accept_tokens(vocabulary.encode(b' world","'))
    assert spelled("llama3", matcher.fast_forward_tokens()).startswith(b"status")
    mask_bits(matcher)
    count = matcher.num_noncanonical_tokens
    matcher.rollback(1)
    assert (matcher.num_noncanonical_tokens or 0) <= (count or 0)
