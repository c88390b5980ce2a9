"""The vocabulary of a model that llama-cpp-python has loaded."""

import logging
import shutil
from typing import Any

import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")

import gguf
import llama_cpp
from llama_cpp import Llama
from llamacpp import models_folder
from llamamodels import assert_order, load, order_grammar, tiny
from tinygguf import write_gguf

import ffwd
from ffwd.adapters.llama_cpp import GrammarPair, tokenizer_of, vocabulary_of

pytestmark = pytest.mark.engine


def piece(llama: Llama, token: int) -> bytes:
    return llama.detokenize([0, token])[len(llama.detokenize([0])) :]


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_ids_and_bytes_are_those_of_the_model(kind, tmp_path):
    llama = load(tiny(tmp_path, kind))
    vocabulary = vocabulary_of(llama)
    assert vocabulary.vocab_size == llama.n_vocab()
    assert vocabulary.bpe is not None
    texts = 0
    for token in range(llama.n_vocab()):
        text = vocabulary.token_bytes(token)
        if text is not None:
            texts += 1
            assert text == piece(llama, token)
    assert texts >= 256
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    ends = [i for i in range(llama.n_vocab()) if llama_cpp.llama_vocab_is_eog(vocab, i)]
    assert vocabulary.eos_token_ids == ends == [llama.token_eos()]
    for text in ('{"customer_name":"Ada"', "pending and more", "é ☃\n"):
        ids = llama.tokenize(text.encode(), add_bos=False)
        assert tokenizer_of(llama).encode(text) == ids


def test_the_file_is_not_the_one_that_was_loaded(tmp_path, caplog):
    """What the loaded model has is right; a tokenizer for prompts cannot be had from it."""
    path = tiny(tmp_path, "bpe")
    llama = load(path)
    expected = vocabulary_of(llama)
    path.unlink()  # The old file stays mapped.
    write_gguf(path, "bpe", merges=60)
    with pytest.raises(ffwd.VocabularyError):
        tokenizer_of(llama)
    with caplog.at_level(logging.WARNING, logger="ffwd"):
        vocabulary = vocabulary_of(llama)
    assert "the tokens of the loaded model are used" in caplog.text
    assert same_tokens(vocabulary, expected)
    path.unlink()
    with pytest.raises(ffwd.VocabularyError, match="tiny-bpe"):
        tokenizer_of(llama)
    assert same_tokens(vocabulary_of(llama), expected)


@pytest.mark.parametrize("kind", ["bpe", "spm"])
def test_a_tokenizer_that_ffwd_does_not_know(kind, tmp_path, monkeypatch, caplog):
    """The loaded model's tokens do: valid texts, the same with drafts and without."""
    llama = load(tiny(tmp_path, kind))
    known = vocabulary_of(llama)

    def unknown(*arguments: Any, **options: Any) -> None:
        raise ffwd.tokenizer.UnsupportedTokenizerError("another pre-tokenizer")

    monkeypatch.setattr("ffwd.adapters.llama_cpp.vocabulary.load", unknown)
    with caplog.at_level(logging.WARNING, logger="ffwd"):
        vocabulary = vocabulary_of(llama)
    assert "another pre-tokenizer" in caplog.text
    assert vocabulary.bpe is None
    assert same_tokens(vocabulary, known)
    assert vocabulary.token_names == known.token_names
    texts = []
    pair = GrammarPair()
    for attached in (False, True):
        if attached:
            pair.attach(llama)
        with pair.constrain(order_grammar(vocabulary)) as processors:
            answer = llama.create_completion(
                "Ada", temperature=0.0, max_tokens=150, logits_processor=processors
            )
        texts.append(answer["choices"][0]["text"])
    assert texts[0] == texts[1]
    assert_order(texts[0])
    # For SentencePiece no text can be encoded without the space before it, so none is forced.
    assert (processors.stats.confirmed > 4) == (kind == "bpe")


def same_tokens(a: ffwd.Vocabulary, b: ffwd.Vocabulary) -> bool:
    assert a.eos_token_ids == b.eos_token_ids
    return [a.token_bytes(i) for i in range(a.vocab_size)] == [
        b.token_bytes(i) for i in range(b.vocab_size)
    ]


@pytest.mark.parametrize("name", ["llama-spm", "gpt-2", "deepseek-coder", "phi-3"])
def test_real_vocabularies(name, caplog):
    try:
        path = models_folder() / f"ggml-vocab-{name}.gguf"
    except FileNotFoundError as error:
        pytest.skip(str(error))
    llama = Llama(str(path), vocab_only=True, verbose=False)
    vocabulary = vocabulary_of(llama)
    assert "the loaded model are used" not in caplog.text
    assert vocabulary.vocab_size == llama.n_vocab()


def test_a_model_whose_tokens_lack_bytes(tmp_path):
    path = tmp_path / "lacking.gguf"
    shutil.copy(tiny(tmp_path, "bpe"), path)
    reader = gguf.GGUFReader(path, "r+")
    # Two tokens for bytes become control tokens.
    for token in (ord("{"), ord("x")):
        types = reader.fields["tokenizer.ggml.token_type"]
        types.parts[types.data[token]][:] = gguf.TokenType.CONTROL
    del reader
    llama = load(path)
    with pytest.raises(ffwd.VocabularyError, match="0x78"):
        vocabulary_of(llama)
