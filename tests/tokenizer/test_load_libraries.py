"""Unigram, WordPiece and changed text: the library encodes, and the table of bytes is ours."""

import io
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import sentencepiece
from sampletexts import TEXTS, random_texts
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import ffwd
from ffwd import TextError, VocabularyError
from ffwd.tokenizer import TokenKind, info, load

SEED = 12
TEXTS_TO_ENCODE = [
    *TEXTS.values(),
    *random_texts(SEED, 150),
    *(" x", "  two", "a  b ", "\n", "<s>a</s>"),
]

# ---------------------------------------------------------------------------------- SentencePiece

PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
SENTENCEPIECE: dict[str, dict[str, Any]] = {
    "unigram": {"model_type": "unigram"},
    "unigram, bytes": {"model_type": "unigram", "byte_fallback": True, **PLAIN},
    "unigram, no dummy space": {"model_type": "unigram", "add_dummy_prefix": False},
    "unigram, named pieces": {
        "model_type": "unigram",
        "user_defined_symbols": ["<tool>", "hello"],
        "control_symbols": ["<c>"],
    },
    "bpe, normalized": {"model_type": "bpe", "byte_fallback": True},
}


@cache
def trained(name: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in TEXTS.values() for line in text.splitlines()] * 2),
        model_writer=model,
        vocab_size=800,
        character_coverage=0.98,
        hard_vocab_limit=False,
        minloglevel=2,
        **SENTENCEPIECE[name],
    )
    return model.getvalue()


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece(name: str) -> None:
    own = sentencepiece.SentencePieceProcessor(model_proto=trained(name))
    for source in (trained(name), own):
        tokenizer = load(source)
        assert tokenizer.kind == "sentencepiece"
        assert tokenizer.model == name.partition(",")[0]
        assert (tokenizer.bpe, tokenizer.exact) == (None, False)
        assert tokenizer.limits
        assert tokenizer.vocab_size == own.vocab_size()
        for text in TEXTS_TO_ENCODE:
            ids = own.encode(text)
            assert tokenizer.encode(text, special="allowed") == ids, text
            assert tokenizer.decode(ids) == own.decode(ids)
            assert tokenizer.count(text, special="allowed") == len(ids)
        batch = tokenizer.encode_batch(TEXTS_TO_ENCODE, special="allowed")
        assert batch == [own.encode(text) for text in TEXTS_TO_ENCODE]
    assert info(trained(name)).model.lower() == tokenizer.model


@pytest.mark.parametrize("name", SENTENCEPIECE)
def test_sentencepiece_decodes_any_ids(name: str) -> None:
    """Also those that no text has; of bytes that are no text, see the documentation."""
    own = sentencepiece.SentencePieceProcessor(model_proto=trained(name))
    tokenizer = load(own)
    rng = random.Random(SEED)
    size = own.vocab_size()
    for _ in range(2_000):
        ids = [rng.randrange(size) for _ in range(rng.randrange(7))]
        if not any(map(own.is_byte, ids)):
            assert tokenizer.decode(ids) == own.decode(ids), ids
    assert tokenizer.decode([own.piece_to_id("▁")] * 3) == own.decode([own.piece_to_id("▁")] * 3)


def test_control_pieces_stay_text() -> None:
    tokenizer = load(trained("unigram, named pieces"))
    control = {tokenizer.token_to_id(name) for name in ("<s>", "</s>", "<c>", "<tool>")}
    text = "a <s> </s> <c> <tool> hello"
    assert not control & set(tokenizer.encode(text))
    assert tokenizer.token_to_id("hello") in tokenizer.encode(text)
    assert tokenizer.token_to_id("<tool>") in tokenizer.encode(text, special={"<tool>"})
    assert tokenizer.encode_parts(["a", 1, "<tool>"])[-1] != tokenizer.token_to_id("<tool>")
    with pytest.raises(TextError, match="<tool>") as raised:
        tokenizer.encode("é <tool>", special="forbidden")
    assert raised.value.byte == 3
    with pytest.raises(TextError, match="<c>"):
        tokenizer.encode(text, special={"<c>"})
    with pytest.raises(TextError, match="surrogate"):
        tokenizer.encode("a\ud800")
    names = [token.content for token in tokenizer.special_tokens.additional]
    assert names == ["<c>", "<tool>"]


def test_offsets_of_sentencepiece() -> None:
    tokenizer = load(trained("unigram"))
    text = "Hello  wörld, 日本"
    encoding = tokenizer.encode_with_offsets(text)
    assert encoding.ids == tokenizer.encode(text)
    data = text.encode()
    for (start, end), (first, last) in zip(
        encoding.character_offsets, encoding.byte_offsets, strict=True
    ):
        assert data[first:last].decode() == text[start:end]
    assert "".join(text[a:b] for a, b in encoding.character_offsets) == text


def test_a_grammar_with_unigram() -> None:
    """Where the model has a piece for each byte."""
    tokenizer = load(trained("unigram, bytes"))
    vocabulary = tokenizer.vocabulary()
    grammar = ffwd.compile(ffwd.grammar.regex("hello there, (you|all)"), vocabulary)
    matcher = grammar.matcher()
    ids = matcher.fast_forward_tokens()
    assert ids
    assert "hello there, ".startswith(tokenizer.decode_bytes(ids).decode())
    assert matcher.accept_tokens(ids)
    with pytest.raises(VocabularyError, match="cannot express"):
        vocabulary.encode("a\u2581b".encode())
    with pytest.raises(VocabularyError, match="no token encodes"):
        load(trained("unigram")).vocabulary()


# -------------------------------------------------------------------------------------- tokenizers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@cache
def wordpiece() -> Tokenizer:
    own = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    own.normalizer = normalizers.BertNormalizer()
    own.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    own.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=600, special_tokens=SPECIAL, show_progress=False)
    own.train_from_iterator(TEXTS.values(), trainer)
    own.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return own


@cache
def unigram() -> Tokenizer:
    own = Tokenizer(models.Unigram())
    own.normalizer = normalizers.NFKC()
    own.pre_tokenizer = pre_tokenizers.Metaspace()
    own.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=600,
        special_tokens=["<unk>", "<s>", "</s>"],
        unk_token="<unk>",
        show_progress=False,
    )
    own.train_from_iterator(TEXTS.values(), trainer)
    own.add_tokens([AddedToken("hello", special=False), AddedToken("<think>", special=False)])
    own.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return own


@cache
def lowered_bpe() -> Tokenizer:
    """BPE that the native tokenizer refuses."""
    letters = pre_tokenizers.ByteLevel.alphabet()
    own = Tokenizer(
        models.BPE(vocab={letter: i for i, letter in enumerate(sorted(letters))}, merges=[])
    )
    own.normalizer = normalizers.Lowercase()
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = decoders.ByteLevel()
    own.add_special_tokens([AddedToken("</s>", special=True, normalized=False)])
    return own


OWN: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": wordpiece,
    "unigram": unigram,
    "bpe": lowered_bpe,
}


@pytest.mark.parametrize("model", OWN)
def test_tokenizers(model: str) -> None:
    own = OWN[model]()
    tokenizer = load(own)
    assert (tokenizer.kind, tokenizer.model, tokenizer.bpe) == ("huggingface", model, None)
    for text in TEXTS_TO_ENCODE:
        encoding = own.encode(text, add_special_tokens=False)
        assert tokenizer.encode(text, special="allowed") == encoding.ids
        around = tokenizer.encode(text, special="allowed", add_special_tokens=True)
        assert around == own.encode(text).ids
        located = tokenizer.encode_with_offsets(text, special="allowed")
        assert located.character_offsets == [tuple(place) for place in encoding.offsets]
        assert tokenizer.decode(encoding.ids) == own.decode(encoding.ids)
    batch = tokenizer.encode_batch(TEXTS_TO_ENCODE, special="allowed")
    assert batch == [tokenizer.encode(text, special="allowed") for text in TEXTS_TO_ENCODE]


@pytest.mark.parametrize("model", OWN)
def test_tokenizers_decode_any_ids(model: str) -> None:
    own = OWN[model]()
    tokenizer = load(own)
    rng = random.Random(SEED)
    for _ in range(3_000):
        ids = [rng.randrange(tokenizer.vocab_size) for _ in range(rng.randrange(7))]
        for skip in (True, False):
            expected = own.decode(ids, skip_special_tokens=skip)
            assert tokenizer.decode(ids, skip_special_tokens=skip) == expected, ids


@pytest.mark.parametrize("model", OWN)
def test_no_special_token_comes_out_of_text(model: str) -> None:
    own = OWN[model]()
    tokenizer = load(own)
    names = [added.content for added in own.get_added_tokens_decoder().values()]
    special = {i for i, added in own.get_added_tokens_decoder().items() if added.special}
    special.discard(own.token_to_id("<unk>") if model == "unigram" else own.token_to_id("[UNK]"))
    rng = random.Random(SEED)
    for _ in range(300):
        text = " ".join(rng.choices([*names, "a", "hello,"], k=4))
        text = text if rng.random() < 0.5 else text.replace(" ", "")
        assert not special & set(tokenizer.encode(text)), text
        assert not special & set(tokenizer.encode_parts([text])), text
        expected = own.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text, special="allowed") == expected
        assert tokenizer.encode(text, special=names) == expected


def test_what_wordpiece_is_and_loses() -> None:
    tokenizer = load(wordpiece())
    assert (tokenizer.prefix_ids, tokenizer.suffix_ids) == ((2,), (3,))
    assert tokenizer.special_tokens.unk is not None
    assert tokenizer.special_tokens.unk.content == "[UNK]"
    assert tokenizer.token_kind(1) is TokenKind.UNKNOWN
    assert any("lower case" in limit for limit in tokenizer.limits)
    assert any("unknown token" in limit for limit in tokenizer.limits)
    assert any("white space" in limit for limit in tokenizer.limits)
    within = next(i for i in range(600) if (tokenizer.id_to_token(i) or "").startswith("##"))
    name = tokenizer.id_to_token(within) or ""
    assert tokenizer.token_bytes(within) == name.removeprefix("##").encode()
    assert tokenizer.encode_parts([2, "The fox", 3, "jumps"]) == [
        2,
        *tokenizer.encode("The fox"),
        3,
        *tokenizer.encode("jumps"),
    ]


def test_a_dummy_space_comes_first_only() -> None:
    own = unigram()
    tokenizer = load(own)
    changed = Tokenizer.from_str(own.to_str())
    changed.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    first = load(changed)
    for text in ("a b", "hello", " x"):
        whole = f"<s>{text}</s>{text}"
        parts = [1, text, 2, text]
        for ours, theirs in ((tokenizer, own), (first, changed)):
            expected = theirs.encode(whole, add_special_tokens=False).ids
            assert ours.encode_parts(parts) == expected, text
