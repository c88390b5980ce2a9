"""Compiled tokenizers on disk."""

import hashlib
import json
import logging
import os
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
import realtokenizers
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer import Tokenizer, load
from ffwd.tokenizer import cache as caching

TEXT = "The abba, foo\tab<tool> déjà </s> \u2581 12345 日本 x"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A directory with a small tokenizer and all files beside it."""
    folder = tmp_path / "model"
    folder.mkdir()
    tokens: list[AddedToken | str] = [
        AddedToken("foo"),
        AddedToken("<tool>", normalized=False),
        "[PAD7]",
    ]
    byte_level(tokens).save(str(folder / "tokenizer.json"))
    settings = {"eos_token": "</s>", "chat_template": "{{ messages }}", "pad_token": "[PAD7]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text('{"vocab_size": 300}')
    return folder


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def assert_same(first: Tokenizer, second: Tokenizer) -> None:
    for field in vars(first._parts).keys() - {"bpe", "bpe_parts"}:
        values = getattr(first._parts, field), getattr(second._parts, field)
        assert values[0] == values[1] or list(values[0]) == list(values[1]), field
    assert first.fingerprint == second.fingerprint
    assert first.findings == second.findings
    assert first.exact == second.exact
    for special in ("text", "allowed"):
        ids = first.encode(TEXT, special=special)
        assert ids == second.encode(TEXT, special=special)
        assert first.count(TEXT, special=special) == len(ids)
        assert first.decode(ids) == second.decode(ids)
    one, two = first.vocabulary(), second.vocabulary()
    assert one.vocab_size == two.vocab_size
    assert one.eos_token_ids == two.eos_token_ids
    assert one.token_names == two.token_names
    tokens = range(one.vocab_size)
    assert [one.token_bytes(i) for i in tokens] == [two.token_bytes(i) for i in tokens]


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the tokenizer is read again")

    monkeypatch.setattr("ffwd.tokenizer.loading._parts", fail)


def test_a_cached_tokenizer_is_the_same(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = load(model)
    folder = tmp_path / "cache" / "below"
    assert_same(plain, load(model, cache=folder))
    assert len(entries(folder)) == 1
    refuse_to_read(monkeypatch)
    caplog.clear()
    cached = load(model, cache=folder)
    assert_same(plain, cached)
    # Its findings are logged as those of any other.
    assert [record.getMessage() for record in caplog.records] == [
        f"{model}: {finding.message}" for finding in plain.findings
    ]
    templates = load(model, cache=str(folder), chat_template="{{ other }}").chat_templates
    assert templates == {"default": "{{ other }}"}


@pytest.mark.parametrize("name", ["llama3", "qwen", "gpt2"])
def test_a_real_tokenizer_is_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    realtokenizers.load(name).tokenizer.save(str(path))
    ends = [load(path).vocab_size - 1]
    plain = load(path, eos_token_ids=ends)
    load(path, eos_token_ids=ends, cache=tmp_path / "cache")
    refuse_to_read(monkeypatch)
    assert_same(plain, load(path, eos_token_ids=ends, cache=tmp_path / "cache"))


def test_names_apart_are_kept(tmp_path: Path) -> None:
    """Those with the separator of names in them, and ids without a token."""
    ranks = tmp_path / "ranks.tiktoken"
    ranks.write_bytes(b"".join(b64encode(bytes([b])) + b" %d\n" % b for b in range(256)))

    def read() -> Tokenizer:
        return load(
            ranks,
            pattern=r"\S+|\s+",
            special_tokens={"nul\0": 256, "\0\0": 259},
            eos_token_ids=[259],
            cache=tmp_path / "cache",
        )

    plain = read()
    names = [plain.id_to_token(i) for i in (0, 256, 257, 259)]
    assert names == ["\0", "nul\0", None, "\0\0"]
    assert len(entries(tmp_path / "cache")) == 1
    assert_same(plain, read())


def test_ranks_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.tiktoken"
    texts = [bytes([byte]) for byte in range(256)] + [b"ab", b" a", b"abba"]
    lines = (b64encode(text) + f" {rank}\n".encode() for rank, text in enumerate(texts))
    path.write_bytes(b"".join(lines))

    def loaded() -> Tokenizer:
        special = {"<end>": 300}
        return load(path, pattern=r"\S+|\s+", special_tokens=special, cache=tmp_path / "cache")

    plain = loaded()
    refuse_to_read(monkeypatch)
    cached = loaded()
    assert cached.encode(TEXT) == plain.encode(TEXT)
    assert cached.fingerprint == plain.fingerprint


def test_nothing_is_written_unless_a_directory_is_named(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(tmp_path.rglob("*"))
    load(model)
    monkeypatch.setenv("FFWD_CACHE_DIR", "")
    load(model)
    assert sorted(tmp_path.rglob("*")) == before
    monkeypatch.setenv("FFWD_CACHE_DIR", str(tmp_path / "named"))
    load(model)
    assert len(entries(tmp_path / "named")) == 1


def test_a_change_of_anything_makes_another_entry(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    load(model, cache=folder)
    changes: list[Callable[[], object]] = [
        lambda: (model / "config.json").write_text('{"vocab_size": 301}'),
        lambda: (model / "generation_config.json").write_text('{"eos_token_id": 258}'),
        lambda: (model / "special_tokens_map.json").write_text('{"bos_token": "foo"}'),
        lambda: (model / "chat_template.jinja").write_text("{{ third }}"),
        lambda: (model / "additional_chat_templates").mkdir(),
        lambda: (model / "additional_chat_templates/x.jinja").write_text("{{ fourth }}"),
        lambda: byte_level(["bar"]).save(str(model / "tokenizer.json")),
    ]
    known = 1
    for change in changes:
        change()
        assert_same(load(model), load(model, cache=folder))
        known += not (model / "additional_chat_templates").is_dir() or bool(
            list((model / "additional_chat_templates").iterdir())
        )
        assert len(entries(folder)) == known
    load(model, cache=folder, eos_token_ids=[3])
    load(model / "tokenizer.json", cache=folder, eos_token_ids=[3])
    assert len(entries(folder)) == known + 2


def test_what_cannot_be_kept_is_loaded_as_ever(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    data = (model / "tokenizer.json").read_bytes()
    load(data, cache=folder)
    path = tmp_path / "fallback.json"
    fallback().save(str(path))
    load(path, cache=folder)
    with pytest.raises(VocabularyError, match="no such file"):
        load(tmp_path / "missing.json", cache=folder)
    assert entries(folder) == []
    # A file stands where the directory would be.
    assert_same(load(model), load(model, cache=path))


def sealed(data: bytes) -> bytes:
    """An entry with the checksum that it should have."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def test_a_changed_entry_is_ignored_and_written_again(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache"
    plain = load(model, cache=folder)
    (path,) = entries(folder)
    whole = path.read_bytes()
    middle = len(whole) // 2
    broken = {
        b"": "another format",
        b"\x80\x04.": "another format",
        whole[:-1]: "ends too early",
        whole + b"x": "goes on too long",
        whole[:5] + b"\x09" + whole[6:]: "another format",
        whole[:7] + b"\0" * 32 + whole[39:]: "another key",
        whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]: "checksum",
        sealed(whole[:47] + b"\xff" * 8 + whole[55:]): "sections",
        sealed(whole.replace(b'"size": ', b'"size": 9')): "",
        sealed(whole.replace(b'"kind": "huggingface"', b'"kind": "HUGGINGFACE"')): "HUGGINGFACE",
        sealed(whole[:-40] + b"\xff" * 8 + whole[-32:]): "",
    }
    for data, reason in broken.items():
        path.write_bytes(data)
        caplog.clear()
        assert_same(plain, load(model, cache=folder))
        messages = [r.getMessage() for r in caplog.records if r.name == caching.__name__]
        (message,) = messages
        assert reason in message
        assert path.read_bytes() == whole


def test_no_changed_byte_breaks_a_process(model: Path, tmp_path: Path) -> None:
    """Whoever can write a checksum too gets a tokenizer that works, or none."""
    folder = tmp_path / "cache"
    load(model, cache=folder)
    (path,) = entries(folder)
    whole = path.read_bytes()
    key = whole[7:39]
    logging.disable(logging.WARNING)
    try:
        for at in [*range(47, len(whole) - 32, 97), *range(len(whole) - 600, len(whole) - 32, 3)]:
            path.write_bytes(sealed(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]))
            found = caching.read_entry(folder, key, "x")
            if found is not None:
                try:
                    tokenizer = Tokenizer(found[0])
                    tokenizer.decode(tokenizer.encode(TEXT))
                    tokenizer.vocabulary()
                except VocabularyError:
                    pass
    finally:
        logging.disable(logging.NOTSET)


def test_processes_may_share_a_directory(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    results: list[Tokenizer] = []

    def work() -> None:
        results.append(load(model, cache=folder))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert len(entries(folder)) == 1, "no temporary file is left"
    for tokenizer in results:
        assert tokenizer.encode(TEXT) == results[0].encode(TEXT)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_no_error(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    assert_same(load(model), load(model, cache=folder))


def test_only_saved_models_are_loaded() -> None:
    for data in (b"", b"\0" * 2000, b"\xff" * 4000):
        with pytest.raises(VocabularyError, match="no saved model"):
            BpeModel.load(data)
