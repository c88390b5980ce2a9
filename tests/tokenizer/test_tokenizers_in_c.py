"""Tokenizer files in the C library: the vocabularies of Python, and the same refusals."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import clibrary
import numpy as np
import pytest
import realtokenizers
from clibrary import CRATE
from ffwdc import C, CallError, CMatcher
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

import ffwd
from ffwd.tokenizer import from_huggingface

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "labels": {"type": "array", "items": {"enum": ["ab abba", "aaab déjà", "▁a"]}},
        "size": {"type": "integer", "minimum": 3, "maximum": 4000},
    },
    "required": ["labels", "size"],
    "additionalProperties": False,
}


def legacy() -> Tokenizer:
    """As Llama 2's file: the normalizer writes the spaces, and puts one before a text."""
    tokenizer = fallback(["▁▁", "[control_3]", "a▁"])
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.pre_tokenizer = None
    return tokenizer


def stages() -> Tokenizer:
    """Every kind of step that cuts a text, and composition before it."""
    tokenizer = byte_level(["déjà", "<think>"])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{L}+"), "isolated"),
            pre_tokenizers.Split("abb", "merged_with_next"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    return tokenizer


def spaces(scheme: str, *, split: bool) -> Tokenizer:
    tokenizer = fallback(["▁▁"])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=split),
            pre_tokenizers.Split("b▁", "isolated"),
            pre_tokenizers.Split(" b", "isolated"),
        ]
    )
    return tokenizer


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "byte-level": byte_level,
    "words and control tokens": lambda: byte_level(
        [
            "word",
            "<unk>",
            "<think>",
            "<|reserved_special_token_1|>",
            AddedToken("ab", normalized=False),
            AddedToken("é", normalized=False),
            AddedToken("lone", single_word=True, normalized=False),
            AddedToken("strips", lstrip=True),
            AddedToken("{{", normalized=True),
            AddedToken("<|im_end|>", special=True, rstrip=True),
        ],
        unk_token="<unk>",
    ),
    "whole pieces": lambda: byte_level(ignore_merges=True),
    "stages": stages,
    "byte fallback": lambda: fallback(["</s>x", "▁▁", "<|reserved_1|>", "[PAD1]", " a"]),
    "legacy": legacy,
    "always": lambda: spaces("always", split=True),
    "never": lambda: spaces("never", split=False),
    "gpt2": lambda: realtokenizers.load("gpt2").tokenizer,
    "qwen": lambda: realtokenizers.load("qwen").tokenizer,
    "mistral-v1": lambda: realtokenizers.load("mistral-v1").tokenizer,
    "mistral-v3": lambda: realtokenizers.load("mistral-v3").tokenizer,
}


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> C:
    return C(clibrary.build(tmp_path_factory.mktemp("shared")))


@cache
def text_of(name: str) -> str:
    return str(TOKENIZERS[name]().to_str())


def saved(folder: Path, text: str) -> str:
    path = folder / "tokenizer.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def assert_same(c: C, path: str, **options: Any) -> None:
    """Texts of all tokens, masks and forced tokens are those of Python."""
    expected = from_huggingface(
        path, vocab_size=options.get("width"), eos_token_ids=options.get("end_tokens")
    )
    handle = c.vocabulary_from_file(path, **options)
    assert c.library.ffwd_vocabulary_width(handle) == expected.vocab_size
    for token in range(expected.vocab_size):
        assert c.token(handle, token) == (expected.token_bytes(token) or b"")
    grammar = ffwd.compile(ffwd.json_schema(SCHEMA), expected)
    compiled = c.compile(handle, "json_schema", json.dumps(SCHEMA).encode())
    words = (expected.vocab_size + 31) // 32
    row = np.zeros(words, dtype=np.uint32)
    random_numbers = random.Random(5)
    for _ in range(3):
        matcher, other = grammar.matcher(max_tokens=150), CMatcher(c, compiled, words, 150)
        while not matcher.is_terminated():
            matcher.fill_bitmask(row)
            assert other.mask() == row.tolist()
            forced = matcher.fast_forward_tokens()
            assert other.forced_tokens() == forced
            tokens = forced or [random_numbers.choice(matcher.allowed_token_ids())]
            assert matcher.accept_tokens(tokens)
            assert other.accept_all(tokens)
        assert other.is_terminated
        other.free()
    c.library.ffwd_grammar_free(compiled)
    c.library.ffwd_vocabulary_free(handle)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_file_is_read_as_in_python(name: str, c: C, tmp_path: Path) -> None:
    path = saved(tmp_path, text_of(name))
    assert_same(c, path)
    if name == "byte-level":
        assert_same(c, path, end_tokens=[255, 257], width=300)


def test_older_files_are_read_as_in_python(c: C, tmp_path: Path) -> None:
    """Without the model's name, with its merges first, and a flag in place of a scheme."""
    file = json.loads(text_of("byte-level"))
    model = file["model"]
    del model["type"]
    merges = [" ".join(merge) for merge in model.pop("merges")]
    file["model"] = {"merges": merges, **model}
    assert_same(c, saved(tmp_path, json.dumps(file)))
    file = json.loads(text_of("byte fallback"))
    file["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    assert_same(c, saved(tmp_path, json.dumps(file)))


def test_grammars_name_control_tokens(c: C, tmp_path: Path) -> None:
    path = saved(tmp_path, text_of("words and control tokens"))
    text = 'start: "ab" <think> /[a-z]+/ <|reserved_special_token_1|>\n'
    vocabulary = from_huggingface(path)
    matcher = ffwd.compile(ffwd.lark(text), vocabulary).matcher()
    words = (vocabulary.vocab_size + 31) // 32
    handle = c.vocabulary_from_file(path)
    other = CMatcher(c, c.compile(handle, "lark", text.encode()), words)
    row = np.zeros(words, dtype=np.uint32)
    for token in (*vocabulary.encode(b"ab"), vocabulary.token_names["<think>"]):
        matcher.fill_bitmask(row)
        assert other.mask() == row.tolist()
        assert matcher.accept_token(token)
        assert other.accept(token)
    matcher.fill_bitmask(row)
    assert other.mask() == row.tolist()


def test_a_text_is_read_as_its_file(c: C, tmp_path: Path) -> None:
    text = text_of("byte fallback")
    handles = c.vocabulary_from_file(saved(tmp_path, text)), c.vocabulary_from_json(text.encode())
    width = c.library.ffwd_vocabulary_width(handles[0])
    first, second = ([c.token(handle, i) for i in range(width)] for handle in handles)
    assert first == second


def unigram() -> str:
    return str(Tokenizer(models.Unigram([("a", -1.0), ("b", -2.0)], unk_id=0)).to_str())


def changed(**changes: Any) -> str:
    """A small file with other values."""
    file = json.loads(text_of("byte-level"))
    model = changes.pop("model", {})
    return json.dumps(file | changes | {"model": file["model"] | model})


CTC = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}
REFUSED: list[tuple[str, Callable[[], str], str, str]] = [
    ("Unigram", unigram, "unsupported", "the tokenizer's model is Unigram: supported is BPE"),
    ("dropout", lambda: changed(model={"dropout": 0.5}), "unsupported", "dropout 0.5"),
    ("suffix", lambda: changed(model={"end_of_word_suffix": "</w>"}), "unsupported", "</w>"),
    ("decoder", lambda: changed(decoder=None), "unsupported", "no `decoder`"),
    ("steps", lambda: changed(decoder=CTC), "unsupported", "CTC"),
    ("normalizer", lambda: changed(normalizer={"type": "Lowercase"}), "unsupported", "Lowercase"),
    ("pieces", lambda: changed(pre_tokenizer={"type": "Whitespace"}), "unsupported", "Whitespace"),
    ("not JSON", lambda: "{", "vocabulary", "line 1"),
    ("no model", lambda: "{}", "vocabulary", "no `model`"),
    ("an array", lambda: "[]", "vocabulary", "no `model`"),
    ("merges", lambda: changed(model={"merges": [["a", "c"]]}), "vocabulary", "names no piece"),
    ("no end", lambda: changed(added_tokens=[]), "vocabulary", "pass `end_tokens`"),
    ("bytes", lambda: fallback(["<0x0a>"]).to_str(), "vocabulary", "token 263"),
    ("added", lambda: changed(added_tokens=[{"id": 7}]), "vocabulary", "missing field"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "status", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_refusal_names_the_file_and_the_reason(
    text: Callable[[], str], status: str, message: str, c: C, tmp_path: Path
) -> None:
    path = saved(tmp_path, text())
    with pytest.raises(CallError, match=re.escape(message)) as raised:
        c.vocabulary_from_file(path)
    assert raised.value.status == status
    assert str(raised.value).startswith(path)
    with pytest.raises(CallError, match=re.escape(message)) as raised:
        c.vocabulary_from_json(text().encode())
    assert raised.value.status == status
    with pytest.raises(ffwd.VocabularyError):
        from_huggingface(path)


def test_bad_arguments_are_named(c: C, tmp_path: Path) -> None:
    path = saved(tmp_path, text_of("byte-level"))
    cases: list[tuple[str, str, Callable[[], object]]] = [
        ("file", "nonesuch.json: ", lambda: c.vocabulary_from_file(f"{tmp_path}/nonesuch.json")),
        ("file", "pass the tokenizer.json in it", lambda: c.vocabulary_from_file(str(tmp_path))),
        ("file", "not a regular file", lambda: c.vocabulary_from_file("/dev/null")),
        (
            "argument",
            "`path` must not be null",
            lambda: c.call("vocabulary_from_file", *[None] * 5),
        ),
        ("vocabulary", "999", lambda: c.vocabulary_from_file(path, [999])),
        ("vocabulary", "cannot end the output", lambda: c.vocabulary_from_file(path, [256])),
        ("vocabulary", "past the model's logits", lambda: c.vocabulary_from_file(path, [3], 100)),
    ]
    for status, message, work in cases:
        with pytest.raises(CallError, match=re.escape(message)) as raised:
            work()
        assert raised.value.status == status, message


RECORD = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 7}, "kind": {"enum": ["first", "second"]}},
    "required": ["id", "kind"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", ["byte-level", "byte fallback"])
def test_the_programs_write_a_record_and_leak_nothing(name: str, tmp_path: Path) -> None:
    library = clibrary.build(tmp_path, system_allocator=True)
    tokenizer, schema = saved(tmp_path, text_of(name)), tmp_path / "schema.json"
    schema.write_text(json.dumps(RECORD))
    # Without the packages of the environment: ctypes is all that it needs.
    command = [sys.executable, "-S", CRATE / "examples/record.py", library, tokenizer, schema]
    in_python = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(in_python.stdout)["kind"] in ("first", "second")
    assert re.fullmatch(r"\d+ tokens\n", in_python.stderr)
    program = clibrary.compiled(CRATE / "examples/record.c", library, tmp_path, "-std=c11")
    nonesuch = [*command[:-2], tmp_path / "nonesuch", schema]
    missing = subprocess.run(nonesuch, capture_output=True, text=True)
    assert missing.returncode == 1
    assert missing.stderr.startswith("file: ")
    watched = clibrary.watched([program, schema, tokenizer])
    assert watched.returncode == 0, watched.stderr
    assert watched.stdout == in_python.stdout
