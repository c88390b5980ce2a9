"""Special tokens in a text: as text, forbidden, allowed, or some of them allowed."""

import pytest
import realencodings
import realtokenizers
from bpepeers import peer
from sampletexts import TEXTS, adversarial_texts
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, Tokenizer

from ffwd import TextError, VocabularyError
from ffwd.tokenizer import Bpe, text_encoder

SEED = 77
HUGGINGFACE = [f"tokenizers:{name}" for name in realtokenizers.NAMES]
TIKTOKEN = [f"tiktoken:{name}" for name in realencodings.NAMES]


def texts_with(names: list[str]) -> list[str]:
    """Adversarial texts with special tokens in them, at their ends, and next to each other."""
    parts = adversarial_texts(SEED, 6 * len(names), length=6)
    texts = []
    for n, name in enumerate(names):
        before, between, after = parts[3 * n : 3 * n + 3]
        texts += [name, before + name, name + after, f"{before}{name}{between}{name}{name}{after}"]
        texts += [f" {name} ", f"\n{name}\n{after}", name[:-1], name[1:] + name]
    return texts


@pytest.mark.parametrize("name", HUGGINGFACE)
def test_allowed_as_in_tokenizers(name: str) -> None:
    own = realtokenizers.load(name.partition(":")[2]).tokenizer
    names = [added.content for added in own.get_added_tokens_decoder().values()]
    for text in [TEXTS["special names"], *texts_with(names[:12] + names[-12:])]:
        peer(name).check(text)


@pytest.mark.parametrize("name", TIKTOKEN)
def test_allowed_as_in_tiktoken(name: str) -> None:
    own = realencodings.load(name.partition(":")[2])
    names = sorted(own.special_tokens_set)[:12]
    bpe = peer(name).bpe
    some = set(names[::2])
    for text in texts_with(names):
        assert bpe.encode(text) == own.encode(text, disallowed_special=()), text
        allowed = own.encode(text, allowed_special="all", disallowed_special=())
        assert bpe.encode(text, special="allowed") == allowed, text
        assert bpe.encode(text, special=set(names)) == bpe.encode(text, special="allowed"), text
        allowed = own.encode(text, allowed_special=some, disallowed_special=())
        assert bpe.encode(text, special=some) == allowed, text


@pytest.mark.parametrize("name", TIKTOKEN)
def test_forbidden_as_in_tiktoken(name: str) -> None:
    own = realencodings.load(name.partition(":")[2])
    bpe = peer(name).bpe
    names = sorted(own.special_tokens_set)[:12]
    for text in texts_with(names):
        if any(name in text for name in names):
            with pytest.raises(ValueError, match="disallowed special token"):
                own.encode(text)
            with pytest.raises(TextError):
                bpe.encode(text, special="forbidden")
        else:
            assert bpe.encode(text, special="forbidden") == own.encode(text)


@pytest.mark.parametrize("name", HUGGINGFACE)
def test_as_text(name: str) -> None:
    """By default a name of a control token stays text, as in the middle of an output."""
    own = realtokenizers.load(name.partition(":")[2]).tokenizer
    slow, bpe = text_encoder(own), peer(name).bpe
    names = [added.content for added in own.get_added_tokens_decoder().values()]
    for text in [TEXTS["special names"], *texts_with(names[:12] + names[-12:])]:
        ids = bpe.encode(text, normalize=False, prefix_space=False)
        assert ids == slow(text.encode()), text


def test_forbidden_says_which_and_where() -> None:
    bpe = Bpe.from_huggingface(byte_level(["<think>"]))
    assert bpe.encode("ab", special="forbidden") == [256]
    with pytest.raises(TextError, match="<think>") as caught:
        bpe.encode("é <think>", special="forbidden")
    assert caught.value.byte == 3


def test_a_word_that_was_added_is_text() -> None:
    """It is found whatever is said about special tokens."""
    bpe = Bpe.from_huggingface(byte_level(["word", "<think>"]))
    for special in ("text", "forbidden", "allowed", set[str]()):
        assert bpe.encode("abword", special=special) == [256, 257]
    assert bpe.encode("<think>") == list(b"<think>")
    assert bpe.encode("<think>", special="allowed") == [258]
    assert bpe.decode([258, 256, 257]) == b"<think>abword"
    assert not bpe.exact
    assert any("added" in limit for limit in bpe.limits)


@pytest.mark.parametrize(
    "added",
    [
        AddedToken("cd", single_word=True, normalized=False),
        AddedToken("cd", lstrip=True, special=True, normalized=False),
        AddedToken("cd", rstrip=True, special=True, normalized=False),
        AddedToken("cd", lstrip=True, rstrip=True, special=True, normalized=False),
        AddedToken("cd", special=True, normalized=True),
    ],
    ids=["single word", "left", "right", "both", "normalized"],
)
def test_flags_of_added_tokens(added: AddedToken) -> None:
    own = byte_level([added])
    bpe = Bpe.from_huggingface(own)
    for text in (
        "cd",
        "cde",
        "acd",
        " cd ",
        "a  \n cd \t b",
        "ab cd cd ab",
        "_cd",
        "écd",
        "cd\u00a0",
        "cdcd",
    ):
        assert bpe.encode(text, special="allowed") == own.encode(text).ids, text


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_the_dummy_space_beside_special_tokens(scheme: str) -> None:
    from tokenizers import normalizers, pre_tokenizers

    tokenizers: list[Tokenizer] = []
    for split in (True, False):
        own = fallback()
        own.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme=scheme, split=split)
        tokenizers.append(own)
    legacy = fallback()
    legacy.pre_tokenizer = None
    legacy.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizers.append(legacy)
    for own in tokenizers:
        bpe = Bpe.from_huggingface(own)
        for text in ("", "a", " a", "  a", "<s>a", "a<s>a</s> a", "<s>", "<s><s> a", " <s>", "▁a"):
            expected = own.encode(text, add_special_tokens=False).ids
            assert bpe.encode(text, special="allowed") == expected, (own.pre_tokenizer, text)


@pytest.mark.parametrize("special", ["none", "", "all", 3, None, ["a"], {"<gone>"}, {3}])
def test_what_is_no_choice(special: object) -> None:
    bpe = Bpe.from_huggingface(byte_level())
    with pytest.raises((VocabularyError, ValueError, TypeError)):
        bpe.encode("ab", special=special)  # type: ignore[arg-type]
