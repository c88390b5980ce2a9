"""The C library: the same masks as Python's, errors with their places, and programs that run."""

import itertools
import json
import random
import re
import shutil
import subprocess
from ctypes import byref, c_bool, c_size_t, c_uint32

import clibrary
import numpy as np
import pytest
import realtokenizers
from clibrary import CRATE
from ffwdc import ENCODE, C, CallError, CMatcher

import ffwd

GRAMMARS = {
    "object": (
        "json_schema",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "size": {"type": "integer", "minimum": 3, "maximum": 4000},
                "labels": {
                    "type": "array",
                    "items": {"enum": ["red", "green"]},
                    "uniqueItems": True,
                },
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    ),
    "any value": ("json_schema", True),
    "date": ("json_schema", {"type": "string", "format": "date"}),
    "alternatives": ("json_schema", {"anyOf": [{"const": "ab"}, {"type": "array", "maxItems": 2}]}),
    "address": ("regex", r"[a-z]{1,8}(\.[a-z]{1,8})*@[a-z]+\.(com|org)"),
    "sums": ("lark", 'start: sum\nsum: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,3}/\n'),
    "nested": ("gbnf", 'root ::= "(" root? ")" | [a-c]+'),
    "list": ("ebnf", 'root ::= item ("," item)*\nitem ::= "x" | "\\"" [a-z]* "\\""'),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return clibrary.build(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def c(library):
    return C(library)


@pytest.fixture(scope="module")
def real():
    return realtokenizers.load("gpt2")


@pytest.fixture(scope="module")
def vocabularies(c, real):
    ends = list(real.eos_token_ids)
    tokens = list(real.reference)
    return ffwd.Vocabulary(tokens, eos_token_ids=ends), c.vocabulary(tokens, ends)


@pytest.fixture(scope="module")
def letters(c):
    return c.vocabulary([bytes([byte]) for byte in range(256)] + [None], [256])


def source_of(language, grammar):
    return json.dumps(grammar).encode() if language == "json_schema" else grammar.encode()


def python_grammar(language, grammar):
    return getattr(ffwd, language)(grammar)


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_those_of_python_bit_for_bit(name, c, vocabularies):
    language, grammar = GRAMMARS[name]
    vocabulary, handle = vocabularies
    words = (vocabulary.vocab_size + 31) // 32
    expected = ffwd.compile(python_grammar(language, grammar), vocabulary)
    compiled = c.compile(handle, language, source_of(language, grammar))
    random_numbers = random.Random(name)
    row = np.zeros(words, dtype=np.uint32)
    for _ in range(6):
        matcher, other = expected.matcher(max_tokens=40), CMatcher(c, compiled, words, 40)
        while not matcher.is_terminated():
            matcher.fill_bitmask(row)
            assert other.mask() == row.tolist()
            assert other.is_accepting == matcher.is_accepting()
            assert other.forced_bytes() == matcher.forced_bytes()
            token = random_numbers.choice(matcher.allowed_token_ids())
            refused = next(t for t in itertools.count() if not row[t // 32] >> t % 32 & 1)
            assert other.validate([token, refused]) == matcher.validate_tokens([token, refused])
            assert not other.accept(refused)
            assert other.accept(token)
            assert matcher.accept_token(token)
        assert other.is_terminated
        taken = other.num_tokens
        other.rollback(taken)
        fork = other.fork()
        assert fork.mask() == other.mask()
        assert other.accept_all(matcher.tokens)
        assert fork.num_tokens == 0
        other.reset()
        assert other.mask() == fork.mask()
        other.free()
        fork.free()
    c.library.ffwd_grammar_free(compiled)


def test_forced_tokens_are_those_of_python(c, real):
    tokens, ends = list(real.reference), list(real.eos_token_ids)
    encode = real.tokenizer.encode

    @ENCODE
    def encoder(_context, text, length, ids, capacity):
        found = encode(bytes(text[:length]).decode(), add_special_tokens=False).ids
        for at, token in enumerate(found[:capacity]):
            ids[at] = token
        return len(found)

    def in_python(text):
        return encode(text.decode(), add_special_tokens=False).ids

    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=ends, encode=in_python)
    handle = c.vocabulary(tokens, ends, encoder)
    language, grammar = GRAMMARS["object"]
    expected = ffwd.compile(ffwd.json_schema(grammar), vocabulary).matcher()
    words = (vocabulary.vocab_size + 31) // 32
    matcher = CMatcher(c, c.compile(handle, language, source_of(language, grammar)), words)
    for text in ("", '{"', '{"name": "x"', '{"name": "x", "labels": ["red", "'):
        ids = in_python(text.encode())
        expected.reset()
        matcher.reset()
        assert expected.accept_tokens(ids)
        assert matcher.accept_all(ids)
        assert matcher.forced_tokens() == expected.fast_forward_tokens()
    assert matcher.forced_tokens()


@pytest.mark.parametrize("answer", [c_size_t(-1).value, 1 << 40])
def test_an_encoder_that_fails_is_an_error(answer, c):
    encoder = ENCODE(lambda *_: answer)
    handle = c.vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], encoder)
    matcher = CMatcher(c, c.compile(handle, "regex", b"abcdef"), 9)
    with pytest.raises(CallError, match="encoder") as raised:
        matcher.forced_tokens()
    assert raised.value.status == "vocabulary"
    assert matcher.accept(ord("a"))


@pytest.mark.parametrize(
    ("language", "text", "status", "message", "place"),
    [
        ("json_schema", b'{"type": 1}', "grammar", "type", ("/type", 0, 0)),
        ("json_schema", b"{", "grammar", "JSON", ("", 0, 0)),
        (
            "json_schema",
            b'{"minimum": 2, "maximum": 1, "type": "integer"}',
            "unsatisfiable",
            "maximum",
            ("", 0, 0),
        ),
        (
            "json_schema",
            b'{"items": {"$ref": "http://elsewhere"}}',
            "unsupported",
            "elsewhere",
            ("/items/$ref", 0, 0),
        ),
        ("regex", b"a\n(", "grammar", "unclosed", ("", 2, 1)),
        ("lark", b"start: a\na: b\n", "grammar", "b", ("", 2, 4)),
        ("gbnf", b"root ::= other", "grammar", "other", ("", 1, 10)),
        ("ebnf", b'root ::= "a', "grammar", "string", ("", 1, 10)),
        ("regex", b"\xff", "argument", "UTF-8: byte 0", ("", 0, 0)),
        ("nonesuch", b"a", "argument", "`language` has no value 99", ("", 0, 0)),
    ],
)
def test_bad_grammars_have_a_status_and_a_place(language, text, status, message, place, c, letters):
    with pytest.raises(CallError, match=re.escape(message)) as raised:
        c.compile(letters, language, text)
    failure = raised.value
    assert failure.status == status
    assert (failure.pointer, failure.line, failure.column) == place


def test_bad_arguments_are_named(c, letters):
    grammar = c.compile(letters, "regex", b"ab")
    matcher = CMatcher(c, grammar, 9)
    cases = [
        ("vocabulary", lambda: c.compile(None, "regex", b"a")),
        (
            "`whitespace` has no value 9",
            lambda: c.compile(letters, "json_schema", b"{}", whitespace=9),
        ),
        ("`regex_dialect` has no", lambda: c.compile(letters, "regex", b"a", regex_dialect=9)),
        ("8 words", lambda: c.call("matcher_fill", matcher.pointer, (c_uint32 * 8)(), c_size_t(8))),
        ("`matcher`", lambda: c.call("matcher_rollback", None, c_size_t(0))),
        ("`accepted`", lambda: c.call("matcher_accept", matcher.pointer, c_uint32(0), None)),
        ("only 0 have been", lambda: matcher.rollback(1)),
        (
            "`tokens`",
            lambda: c.call(
                "matcher_accept_all", matcher.pointer, None, c_size_t(1), byref(c_bool())
            ),
        ),
    ]
    for message, work in cases:
        with pytest.raises(CallError, match=re.escape(message)) as raised:
            work()
        assert raised.value.status == "argument"
    with pytest.raises(CallError, match="outside the vocabulary") as raised:
        matcher.accept(257)
    assert raised.value.status == "token"
    with pytest.raises(CallError, match="end-of-sequence") as raised:
        c.vocabulary([b"a"], [])
    assert raised.value.status == "vocabulary"
    with pytest.raises(CallError, match="max_tokens=2") as raised:
        CMatcher(c, grammar, 9, max_tokens=2)
    assert raised.value.status == "budget"
    for free in ("error", "vocabulary", "grammar", "matcher"):
        getattr(c.library, f"ffwd_{free}_free")(None)
    # The matcher is as it was.
    assert matcher.accept_all(b"ab")


def test_limits_hold_and_are_named(c, letters):
    limits = c.library.ffwd_limits_default()
    limits.source_bytes = 5
    with pytest.raises(CallError, match="source_bytes") as raised:
        c.compile(letters, "regex", b"abcdef", limits=limits)
    assert raised.value.status == "limit"
    limits = c.library.ffwd_limits_default()
    limits.compile_seconds = -1.0
    with pytest.raises(CallError, match="`compile_seconds` must be 0 or more") as raised:
        c.compile(letters, "regex", b"a", limits=limits)
    assert raised.value.status == "argument"
    limits.compile_seconds = float("inf")
    assert c.compile(letters, "regex", b"a", limits=limits)


def test_objects_may_be_freed_in_any_order(c):
    vocabulary = c.vocabulary([bytes([byte]) for byte in range(256)] + [None], [256])
    grammar = c.compile(vocabulary, "regex", b"a*")
    matcher = CMatcher(c, grammar, 9)
    c.library.ffwd_vocabulary_free(vocabulary)
    c.library.ffwd_grammar_free(grammar)
    assert matcher.accept(ord("a"))
    matcher.free()


def test_the_header_names_every_function():
    sources = "".join(path.read_text() for path in sorted((CRATE / "src").glob("*.rs")))
    header = (CRATE / "include/ffwd.h").read_text()
    exported = re.findall(r'pub (?:unsafe )?extern "C" fn (ffwd_\w+)', sources)
    assert len(exported) > 20
    assert sorted(re.findall(r"\b(ffwd_\w+)\(", header)) == sorted(exported)
    values = set(re.findall(r"pub const (FFWD_\w+): u32 = \d+;", sources))
    assert values <= set(re.findall(r"#define (FFWD_\w+) \d+", header))


SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 7}, "kind": {"enum": ["first", "second"]}},
    "required": ["id", "kind"],
    "additionalProperties": False,
}


def test_the_program_in_c_writes_a_record_and_leaks_nothing(tmp_path):
    # Memory is watched where it is the system's.
    library = clibrary.build(tmp_path, system_allocator=True)
    program = clibrary.compiled(CRATE / "examples/record.c", library, tmp_path, "-std=c11")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    written = subprocess.run([program, schema], check=True, capture_output=True, text=True)
    # The lowest digits come first: 1, and then one more.
    assert json.loads(written.stdout) == {"id": 10, "kind": "first"}
    in_rust = clibrary.artifacts("example")["record"]
    same = subprocess.run([in_rust, schema], check=True, capture_output=True, text=True)
    assert same.stdout == written.stdout
    found = clibrary.watched([program, schema])
    assert found.returncode == 0, found.stderr
    assert found.stdout == written.stdout
    schema.write_text('{"type": "nonesuch"}')
    refused = clibrary.watched([program, schema])
    assert refused.returncode == 1, refused.stderr
    assert "nonesuch" in refused.stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler is installed")
def test_the_program_in_cpp_prints_masks(library, tmp_path):
    program = clibrary.compiled(CRATE / "examples/masks.cpp", library, tmp_path, "-std=c++17")
    printed = subprocess.run([program, "a(b|c)+", "ab"], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == ["a ", "b c ", "b c end "]
    refused = subprocess.run([program, "a(b|c)+", "ax"], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout.splitlines()[-1]) == (1, "refused x")
    wrong = subprocess.run([program, "a(", ""], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "line 1, column 2" in wrong.stderr


def test_the_program_of_the_page_runs(library, tmp_path):
    page = (CRATE.parents[3] / "docs/c.md").read_text()
    source = tmp_path / "page.c"
    source.write_text(re.findall(r"```c\n(.*?)```", page, re.DOTALL)[0])
    program = clibrary.compiled(source, library, tmp_path, "-std=c11")
    printed = subprocess.run([program], capture_output=True, text=True, check=True)
    assert printed.stdout.split() == ["n", "y"]
