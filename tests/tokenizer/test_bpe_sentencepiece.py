"""SentencePiece models with all sorts of options, trained on the spot, and damaged ones."""

import io
import random
from typing import Any

import pytest
import sentencepiece
from sampletexts import RUNS, TEXTS, adversarial_texts, random_texts

from ffwd import TextError, VocabularyError
from ffwd.tokenizer import Bpe

SEED = 9
EXACT: dict[str, Any] = {
    "model_type": "bpe",
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
}


def trained(**options: Any) -> bytes:
    """The bytes of a model of some hundred pieces."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in TEXTS.values() for line in text.splitlines()] * 2),
        model_writer=model,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 800, "character_coverage": 0.98, **options},
    )
    return model.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"add_dummy_prefix": False},
        {"split_digits": True},
        {"allow_whitespace_only_pieces": True, "split_by_whitespace": False},
        {"control_symbols": ["<a>", "[B]"]},
    ],
    ids=str,
)
def test_ids_are_those_of_sentencepiece(options: dict[str, Any]) -> None:
    model = trained(byte_fallback=True, **EXACT, **options)
    own = sentencepiece.SentencePieceProcessor(model_proto=model)
    bpe = Bpe.from_sentencepiece(model)
    assert bpe.vocab_size == own.vocab_size()
    texts = [*TEXTS.values(), *random_texts(SEED, 300), *adversarial_texts(SEED, 600)]
    for text in [*texts, *(run[:300] for run in RUNS.values())]:
        assert bpe.encode(text) == own.encode(text), text


def test_user_defined_pieces() -> None:
    """Those that are plain text are found in every text, the others where it is allowed."""
    names = ["hello", "\t\t", "<tool>", "no space"]
    model = trained(byte_fallback=True, user_defined_symbols=names, **EXACT)
    own = sentencepiece.SentencePieceProcessor(model_proto=model)
    bpe = Bpe.from_sentencepiece(model)
    for text in (
        "say hello world",
        "a\t\t\tb",
        "ahello",
        "x <tool> y",
        "hello",
        "\t\t",
        "no space",
    ):
        assert bpe.encode(text, special="allowed") == own.encode(text), text
    tool = own.piece_to_id("<tool>")
    assert tool not in bpe.encode("x <tool> y")


def test_sources(tmp_path: Any) -> None:
    model = trained(byte_fallback=True, **EXACT)
    file = tmp_path / "tokenizer.model"
    file.write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    ids = processor.encode("The quick brown fox")
    for source in (model, file, str(file), processor):
        assert Bpe.from_sentencepiece(source).encode("The quick brown fox") == ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "unigram"}, "is Unigram: supported is BPE"),
        ({"model_type": "word", "byte_fallback": False}, "is Word"),
        ({"model_type": "char", "byte_fallback": False}, "is Char"),
        ({"normalization_rule_name": "nmt_nfkc"}, r"changes text \(nmt_nfkc\)"),
        ({"remove_extra_whitespaces": True}, "removes spaces"),
        ({"byte_fallback": False}, "no token encodes the byte"),
        ({"treat_whitespace_as_suffix": True}, "at the end of words"),
    ],
    ids=lambda value: str(value),
)
def test_models_that_are_refused(options: dict[str, Any], message: str) -> None:
    model = trained(**{**EXACT, "byte_fallback": True, **options})
    with pytest.raises(VocabularyError, match=message):
        Bpe.from_sentencepiece(model)


def is_refused(model: bytes) -> bool:
    """Any other exception is a failure."""
    try:
        Bpe.from_sentencepiece(model).encode("text")
    except (VocabularyError, TextError):
        return True
    return False


def test_damaged_models() -> None:
    """Whatever the bytes are: a model, or the error that says that they are none."""
    model = trained(byte_fallback=True, vocab_size=500, **EXACT)
    rng = random.Random(SEED)
    damaged = [model[:cut] for cut in (*range(40), *rng.sample(range(len(model)), 40))]
    for _ in range(150):
        other = bytearray(model)
        for _ in range(rng.randrange(1, 4)):
            other[rng.randrange(len(other))] = rng.randrange(256)
        damaged.append(bytes(other))
    damaged += [b"", b"\n" * 50, rng.randbytes(100), b"\xff" * 100]
    assert sum(map(is_refused, damaged)) > 100


@pytest.mark.parametrize("source", [None, 3, ["a"], "no/such/file"])
def test_what_is_no_model(source: Any) -> None:
    with pytest.raises(VocabularyError):
        Bpe.from_sentencepiece(source)
