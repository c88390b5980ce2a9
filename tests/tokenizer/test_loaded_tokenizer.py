"""What a loaded tokenizer does: places, control tokens as parts, single tokens, threads."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import realtokenizers
from realtokenizers import package_file, sentencepiece_file
from sampletexts import TEXTS, long_texts, random_texts
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, Tokenizer, processors

from ffwd import TextError, TokenError, VocabularyError
from ffwd.tokenizer import Tokenizer as Loaded
from ffwd.tokenizer import TokenizerParts, TokenKind, load
from ffwd.tokenizer.decoding import TableDecoder

SEED = 44
BYTE_LEVEL = ("deepseek", "gpt2", "qwen")


def own_tokenizer(name: str) -> Tokenizer:
    return realtokenizers.load(name).tokenizer


def texts() -> list[str]:
    return [*TEXTS.values(), *random_texts(SEED, 200)]


# ----------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_places_are_those_of_tokenizers(name: str) -> None:
    """Byte-level BPE. Where text is composed, tokenizers leaves marks out of the place."""
    own, tokenizer = own_tokenizer(name), load(own_tokenizer(name))
    for text in texts():
        theirs = own.encode(text, add_special_tokens=False)
        ours = tokenizer.encode_with_offsets(text, special="allowed")
        assert ours.ids == theirs.ids
        if own.normalizer is None or own.normalizer.normalize_str(text) == text:
            assert ours.character_offsets == [tuple(place) for place in theirs.offsets], text


@pytest.mark.parametrize("name", [*BYTE_LEVEL, "mistral-v1"])
def test_places_cover_the_text(name: str) -> None:
    tokenizer = load(own_tokenizer(name))
    for text in texts():
        located = tokenizer.encode_with_offsets(text)
        data = text.encode()
        starts = [0]
        for character in text:
            starts.append(starts[-1] + len(character.encode()))
        at = 0
        for (first, last), (start, end) in zip(
            located.byte_offsets, located.character_offsets, strict=True
        ):
            assert first <= at or first == last, text
            assert starts[start] <= first <= last <= starts[end]
            if start < end:
                assert starts[start + 1] > first
                assert starts[end - 1] < last
            at = max(at, last)
        assert at == len(data)


def test_places_of_bytes() -> None:
    """Tokens that end within a character: their bytes are exact, their characters are whole."""
    tokenizer = load(byte_level())
    located = tokenizer.encode_with_offsets("aé日ab")
    assert located.ids == [97, 0xC3, 0xA9, 0xE6, 0x97, 0xA5, 256]
    assert located.byte_offsets == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 8)]
    assert located.character_offsets == [(0, 1), (1, 2), (1, 2), (2, 3), (2, 3), (2, 3), (3, 5)]


def test_places_of_what_a_tokenizer_writes() -> None:
    """The space before a text lies nowhere; a composed character where its parts do."""
    tokenizer = load(fallback())
    located = tokenizer.encode_with_offsets("b▁a", special="text")
    assert [tokenizer.id_to_token(i) for i in located.ids] == ["▁", "b", "▁a"]
    assert located.byte_offsets == [(0, 0), (0, 1), (1, 5)]
    assert located.character_offsets == [(0, 0), (0, 1), (1, 3)]

    qwen = load(own_tokenizer("qwen"))
    located = qwen.encode_with_offsets("xe\u0301")
    assert qwen.decode(located.ids) == "xé"
    assert located.character_offsets[-1] == (1, 3)
    assert located.byte_offsets[-1][1] == 4


def test_places_of_tokens_that_take_white_space() -> None:
    added = [
        AddedToken("<l>", special=True, lstrip=True),
        AddedToken("<r>", special=True, rstrip=True),
        AddedToken("word", single_word=True),
    ]
    own = byte_level(added)
    tokenizer = load(own)
    for text in ("a  <l> b <r> \n c", "<l><r>", " <l> ", "a word swords <r>", "é <r> é"):
        theirs = own.encode(text, add_special_tokens=False)
        ours = tokenizer.encode_with_offsets(text, special="allowed")
        assert ours.ids == theirs.ids
        assert ours.character_offsets == [tuple(place) for place in theirs.offsets]


# ------------------------------------------------------------------------------------------ parts


def small_tokenizers() -> list[Tokenizer]:
    flagged = [
        AddedToken("<l>", special=True, lstrip=True, normalized=False),
        AddedToken("<r>", special=True, rstrip=True, normalized=False),
        AddedToken("<b>", special=True, lstrip=True, rstrip=True, normalized=False),
        AddedToken("<think>", special=False, normalized=False),
        AddedToken("ab ab", special=False, normalized=False),
    ]
    legacy = Tokenizer.from_str(own_tokenizer("mistral-v1").to_str())
    return [byte_level(flagged), fallback(), own_tokenizer("mistral-v3"), legacy]


@pytest.mark.parametrize("index", range(4))
def test_parts_are_as_if_the_tokens_were_found(index: int) -> None:
    """Beside tokenizers, which finds the names in the joined text."""
    own = small_tokenizers()[index]
    tokenizer = load(own)
    added = own.get_added_tokens_decoder()
    names = {i: token.content for i, token in added.items() if token.content != "ab ab"}
    rng = random.Random(SEED)
    pieces = ["a", " ", "  ab", "b\n", "é", " ab ab ", "a ", "▁", ""]
    for _ in range(600):
        parts: list[str | int] = [
            rng.choice(list(names)) if rng.random() < 0.4 else rng.choice(pieces)
            for _ in range(rng.randrange(7))
        ]
        joined = "".join(names[part] if isinstance(part, int) else part for part in parts)
        expected = own.encode(joined, add_special_tokens=False).ids
        assert tokenizer.encode_parts(parts) == expected, parts


def test_no_control_token_is_found_in_a_part() -> None:
    for name in ("deepseek", "qwen", "mistral-v3"):
        tokenizer = load(own_tokenizer(name))
        special = {token.id for token in tokenizer.special_tokens.additional}
        assert special
        for token in [*tokenizer.special_tokens.additional][:40]:
            text = f"a{token.content}b {token.content}"
            assert not special & set(tokenizer.encode_parts([text]))
            assert not special & set(tokenizer.encode_parts([token.content]))
            half = len(token.content) // 2
            joined = tokenizer.encode_parts([token.content[:half], token.content[half:]])
            assert joined == tokenizer.encode(token.content)
            assert tokenizer.encode_parts([token.id, text])[0] == token.id


def test_every_part_of_a_sentencepiece_model_is_a_text() -> None:
    """As mistral-common encodes each message by itself."""
    path = sentencepiece_file(realtokenizers.SENTENCEPIECE_FILES["mistral-v3"])
    tokenizer = load(path)
    parts: list[str | int] = [1, 3, "Hello", 4, "Hi!", 2, 3, "How are", " you?", 4]
    expected = [1, 3, 23325, 4, 16127, 29576, 2, 3, 2370, 1228, 1136, 29572, 4]
    assert tokenizer.encode_parts(parts) == expected


@pytest.mark.parametrize("wrong", [-1, 258, 1 << 31, 1 << 70])
def test_an_unknown_id_in_a_prompt_and_in_an_answer(wrong: int) -> None:
    tokenizer = load(byte_level())
    with pytest.raises(TokenError):
        tokenizer.encode_parts(["a", wrong])
    with pytest.raises(TokenError):
        tokenizer.decode([97, wrong])
    with pytest.raises(TokenError):
        tokenizer.decode_bytes([wrong], skip_special_tokens=False)
    assert tokenizer.id_to_token(wrong) is None
    assert tokenizer.token_bytes(wrong) is None


def test_ids_without_a_token() -> None:
    tokenizer = load(package_file("llama_models", "llama3", "tokenizer.model"))
    assert tokenizer.token_kind(tokenizer.vocab_size) is TokenKind.PADDING
    with pytest.raises(TokenError):
        tokenizer.token_kind(-1)


# -------------------------------------------------------------------------------------- decoding


@pytest.mark.parametrize("name", ["deepseek", "gpt2", "mistral-v1", "mistral-v3"])
def test_any_ids_are_decoded_as_by_tokenizers(name: str) -> None:
    """And as by the same table in Python."""
    own = own_tokenizer(name)
    tokenizer = load(own)
    twin = TableDecoder(
        [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)],
        special=tokenizer.special_ids,
        strip_first_space=tokenizer.decoder.strip_first_space,
    )
    rng = random.Random(SEED)
    for _ in range(2_000):
        ids = [rng.randrange(tokenizer.vocab_size) for _ in range(rng.randrange(9))]
        for skip in (True, False):
            text = tokenizer.decode(ids, skip_special_tokens=skip)
            assert text == twin.decode(ids, skip_special_tokens=skip)
            data = tokenizer.decode_bytes(ids, skip_special_tokens=skip)
            assert data == twin.decode_bytes(ids, skip_special_tokens=skip)
            # tokenizers replaces byte tokens that are no text one by one.
            if not name.startswith("mistral") or "\ufffd" not in text:
                assert text == own.decode(ids, skip_special_tokens=skip), ids


def test_names_of_tokens() -> None:
    for name in ("gpt2", "mistral-v3"):
        own, tokenizer = own_tokenizer(name), load(own_tokenizer(name))
        for i in range(own.get_vocab_size()):
            piece = own.id_to_token(i)
            assert tokenizer.id_to_token(i) == piece
            assert tokenizer.token_to_id(piece) == i
        assert tokenizer.token_to_id("no such token") is None


# ------------------------------------------------------------------------------------ the whole


def test_what_a_tokenizer_puts_around_a_text() -> None:
    own = byte_level(["<s>"])
    templates = {
        "<s> $A </s>": ([257], [258]),
        "$A </s>": ([], [258]),
        "<s> $A": ([257], []),
        "$A": ([], []),
    }
    for template, (prefix, suffix) in templates.items():
        own.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(
                    single=template, special_tokens=[("<s>", 257), ("</s>", 258)]
                ),
            ]
        )
        tokenizer = load(own)
        assert (list(tokenizer.prefix_ids), list(tokenizer.suffix_ids)) == (prefix, suffix)
        assert (tokenizer.add_bos, tokenizer.add_eos) == (bool(prefix), bool(suffix))
        for text in ("", "ab", "a b"):
            assert tokenizer.encode(text, add_special_tokens=True) == own.encode(text).ids
            assert tokenizer.count(text, add_special_tokens=True) == len(own.encode(text).ids)
            batch = tokenizer.encode_batch([text] * 3, add_special_tokens=True)
            assert batch == [own.encode(text).ids] * 3


def test_a_tokenizer_that_truncates_and_pads_is_taken_without() -> None:
    own = byte_level()
    own.enable_truncation(3)
    own.enable_padding(length=3)
    assert load(own).encode("ab" * 5) == [256] * 5


def test_special_tokens_of_a_text() -> None:
    tokenizer = load(byte_level(["<think>"]))
    assert 258 not in tokenizer.encode("</s>")
    assert tokenizer.encode("</s>", special="allowed") == [258]
    assert tokenizer.encode("<think></s>", special={"<think>"})[0] == 257
    with pytest.raises(TextError, match="</s>"):
        tokenizer.encode("a</s>", special="forbidden")
    with pytest.raises(TextError, match=r"text 1 of the batch.*</s>") as raised:
        tokenizer.encode_batch(["a", "a</s>", "</s>"], special="forbidden")
    assert raised.value.byte == 1
    with pytest.raises(TextError):
        tokenizer.encode_batch(["<|x|>"], special={"<|x|>"})


def test_batches_of_long_texts() -> None:
    tokenizer = load(own_tokenizer("deepseek"))
    batch = [*long_texts().values(), "", "short", *TEXTS.values()]
    expected = [tokenizer.encode(text) for text in batch]
    for threads in (None, 1, 2, 64):
        assert tokenizer.encode_batch(batch, threads=threads) == expected
    assert tokenizer.encode_batch([]) == []
    with pytest.raises(ValueError, match="at least 1"):
        tokenizer.encode_batch(batch, threads=0)
    wrong: Any = [*batch, 3]
    with pytest.raises(TypeError):
        tokenizer.encode_batch(wrong)
    with pytest.raises(TextError, match=r"text 1 of the batch.*U\+D800") as raised:
        tokenizer.encode_batch(["a", "é\ud800"])
    assert raised.value.byte == 2


def test_threads_share_a_tokenizer() -> None:
    """Every call gives what it gives alone."""
    tokenizer = load(own_tokenizer("gpt2"))
    long = [text[:20_000] for text in long_texts().values()]

    def work(seed: int) -> bool:
        rng = random.Random(seed)
        for _ in range(12):
            text = rng.choice(long)[rng.randrange(2_000) :]
            ids = tokenizer.encode(text)
            located = tokenizer.encode_with_offsets(text, special="allowed")
            assert tokenizer.decode(ids) == text
            assert tokenizer.encode_batch([text, "a"], threads=2)[0] == ids
            assert located.byte_offsets[-1][1] == len(text.encode())
            assert tokenizer.encode_parts([text, 50256]) == [*ids, 50256]
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_the_fingerprint_is_of_the_table() -> None:
    """The same vocabulary has the same one, from whatever format."""
    from realencodings import load as encoding

    assert load(own_tokenizer("gpt2")).fingerprint == load(encoding("gpt2")).fingerprint
    small = load(byte_level())
    assert small.fingerprint == load(byte_level()).fingerprint
    others = [byte_level(["<think>"]), byte_level(["word"]), byte_level(end="<eos>"), fallback()]
    assert len({small.fingerprint, *(load(own).fingerprint for own in others)}) == 5
    assert len(small.fingerprint) == 64


def test_parts_that_contradict_each_other() -> None:
    bpe = load(byte_level()).bpe
    good: dict[str, Any] = {
        "kind": "huggingface",
        "model": "bpe",
        "tokens": [b"a"],
        "names": ["a"],
        "kinds": [TokenKind.TEXT],
        "bpe": bpe,
    }
    assert Loaded(TokenizerParts(**good)).vocab_size == 1
    for change in (
        {"names": []},
        {"tokens": [], "names": [], "kinds": []},
        {"bpe": None},
        {"eos_token_ids": [1]},
        {"prefix_ids": [-1]},
        {"special_ids": [9]},
    ):
        with pytest.raises(VocabularyError):
            Loaded(TokenizerParts(**good | change))


def test_a_vocabulary_for_the_engine() -> None:
    tokenizer = load(byte_level())
    vocabulary = tokenizer.vocabulary(vocab_size=300)
    assert (vocabulary.vocab_size, vocabulary.eos_token_ids) == (300, [257])
    assert vocabulary.bpe is tokenizer.bpe
    assert tokenizer.vocabulary(eos_token_ids=[257]).eos_token_ids == [257]
    with pytest.raises(VocabularyError, match="cannot end the output"):
        tokenizer.vocabulary(eos_token_ids=[97])
    with pytest.raises(VocabularyError, match="past the model's logits"):
        tokenizer.vocabulary(vocab_size=100)
    nothing = load(byte_level(end=None))
    assert nothing.eos_token_ids == ()
    with pytest.raises(VocabularyError, match="eos_token_ids"):
        nothing.vocabulary()
