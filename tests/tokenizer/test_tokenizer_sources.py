"""Where a tokenizer is read from: objects, files and directories; end tokens and width."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from smalltokenizers import byte_level, fallback
from tokenizers import AddedToken, Tokenizer, models
from transformers import PreTrainedTokenizerFast

from ffwd._native import VocabularyError
from ffwd.tokenizer import (
    TokenKind,
    from_huggingface,
    text_encoder,
    token_table,
    vocabulary,
)


def save(folder: Path, tokenizer: Tokenizer, **configs: Any) -> Path:
    """A Hugging Face directory; `configs` are JSON files by name, without their endings."""
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_all_sources_give_the_same(tmp_path: Path) -> None:
    tokenizer = byte_level(["<think>", "word"])
    save(tmp_path, tokenizer, tokenizer_config={"eos_token": "</s>"})
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    table = token_table(tokenizer)
    assert table.eos_token_ids == (259,)
    for source in (
        tmp_path,
        str(tmp_path),
        tmp_path / "tokenizer.json",
        str(tmp_path / "tokenizer.json"),
        fast,
    ):
        assert token_table(source) == table
        assert text_encoder(source)(b"ab<think>word") == text_encoder(tokenizer)(b"ab<think>word")


def test_the_vocabulary_has_the_tables_tokens() -> None:
    tokenizer = byte_level(["<think>"])
    whole = from_huggingface(tokenizer, vocab_size=300, eos_token_ids=[258, 257])
    table = token_table(tokenizer, vocab_size=300, eos_token_ids=[257, 258])
    assert whole.vocab_size == 300
    assert list(whole.eos_token_ids) == [257, 258]
    assert [whole.token_bytes(i) for i in range(300)] == list(table.tokens)
    assert whole.encode(b"ab<think>") == [256, *b"<think>"]
    assert vocabulary(table).token_bytes(256) == b"ab"


def test_special_tokens_that_only_transformers_knows() -> None:
    fast = PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["word"]), eos_token="</s>", bos_token="word"
    )
    assert token_table(fast).kinds[257] is TokenKind.SPECIAL


def test_end_tokens_of_a_directory(tmp_path: Path) -> None:
    """The generation config's list and the tokenizer's own; config.json only without the former."""
    tokenizer = byte_level(["<|eot_id|>", "<|eom_id|>"])
    folder = save(
        tmp_path,
        tokenizer,
        tokenizer_config={"eos_token": {"content": "</s>", "__type": "AddedToken"}},
        config={"eos_token_id": 257, "vocab_size": 320},
    )
    assert token_table(folder).eos_token_ids == (257, 259)
    save(tmp_path, tokenizer, generation_config={"eos_token_id": [258]})
    assert token_table(folder).eos_token_ids == (258, 259)
    assert token_table(folder, eos_token_ids=[257]).eos_token_ids == (257,)


def test_end_tokens_by_well_known_names() -> None:
    table = token_table(byte_level(["<|eot_id|>", "<|im_start|>"], end="<|endoftext|>"))
    assert table.eos_token_ids == (257, 259)
    assert table.kinds[257:] == (TokenKind.EOS, TokenKind.CONTROL, TokenKind.EOS)


def test_no_end_token() -> None:
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        token_table(byte_level(end="<fin>"))
    with pytest.raises(VocabularyError, match="pass eos_token_ids"):
        token_table(byte_level(), eos_token_ids=[])


@pytest.mark.parametrize("ids", [["2"], [True], [1.5], "2", [None]])
def test_end_tokens_that_are_no_ids(ids: Any) -> None:
    with pytest.raises(VocabularyError, match="eos_token_ids is neither"):
        token_table(byte_level(), eos_token_ids=ids)


@pytest.mark.parametrize("token_id", [-1, 258, 1 << 40])
def test_an_end_token_outside(token_id: int) -> None:
    with pytest.raises(VocabularyError, match=rf"\[{token_id}\] are outside .* 258 ids"):
        token_table(byte_level(), eos_token_ids=[257, token_id])


def test_an_end_token_that_is_text() -> None:
    """The tokenizer uses the line break as text, so it cannot also mean the end."""
    with pytest.raises(VocabularyError, match=r"10 cannot end the output.*'\\n'"):
        from_huggingface(byte_level(), eos_token_ids=[257, 10])


def test_an_end_token_that_only_looks_like_text() -> None:
    """In a conversion that lists `</s>` as an ordinary token, which no merge reaches."""
    tokenizer = fallback(["<end>"])
    whole = from_huggingface(tokenizer, eos_token_ids=[263])
    assert whole.token_bytes(263) is None
    with pytest.raises(VocabularyError, match="260 cannot end the output"):
        from_huggingface(tokenizer, eos_token_ids=[260])


def test_width(tmp_path: Path) -> None:
    tokenizer = byte_level()
    assert token_table(tokenizer).width == 258
    table = token_table(tokenizer, vocab_size=260)
    assert table.width == len(table.tokens) == 260
    assert table.kinds[258:] == (TokenKind.PADDING,) * 2
    assert table.tokens[258:] == (None, None)
    for config in ({"vocab_size": 270}, {"text_config": {"vocab_size": 270}}):
        folder = save(tmp_path, tokenizer, config=config)
        assert token_table(folder).width == 270
        assert token_table(folder, vocab_size=280).width == 280


def test_logits_narrower_than_the_tokenizer() -> None:
    """Special tokens that the model cannot produce are left out, text is not."""
    tokenizer = byte_level(["<think>"])
    assert token_table(tokenizer, vocab_size=257, eos_token_ids=[0]).width == 257
    with pytest.raises(VocabularyError, match=r"vocab_size is 255, the token ids are \[255, 256\]"):
        token_table(tokenizer, vocab_size=255, eos_token_ids=[0])


@pytest.mark.parametrize("vocab_size", [0, -5, True, 1 << 40, "9", 9.5])
def test_a_width_that_is_none(vocab_size: Any) -> None:
    with pytest.raises(VocabularyError, match="vocab_size must be"):
        token_table(byte_level(), vocab_size=vocab_size)


def test_ids_without_a_token_are_unused() -> None:
    tokenizer = byte_level(end=None)
    vocabulary_ = {**tokenizer.get_vocab(), "zz": 400}
    tokenizer.model = models.BPE(vocab=vocabulary_, merges=[])
    table = token_table(tokenizer, eos_token_ids=[300])
    assert table.kinds[299] is TokenKind.UNUSED
    assert table.kinds[300] is TokenKind.EOS
    assert table.tokens[400] == b"zz"


def test_ids_beyond_all_bounds() -> None:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 4_000_000_000}, merges=[]))
    tokenizer.decoder = byte_level().decoder
    with pytest.raises(VocabularyError, match="ids up to 4000000000"):
        token_table(tokenizer, eos_token_ids=[0])


def test_tokens_that_only_the_tokenizer_config_has(tmp_path: Path) -> None:
    folder = save(
        tmp_path,
        byte_level(["word"]),
        tokenizer_config={
            "added_tokens_decoder": {
                "257": {"content": "word", "special": True},
                "259": {"content": "<|late|>", "special": True},
                "260": {"content": "later", "special": False},
            },
            "eos_token": "<|late|>",
        },
    )
    table = token_table(folder)
    assert table.kinds[257] is TokenKind.SPECIAL
    assert table.eos_token_ids == (259,)
    assert table.tokens[260] == b"later"
    assert text_encoder(folder)(b"later word") == [260, *b" word"]


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"generation_config": {"eos_token_id": "2"}}, "generation_config.json: eos_token_id"),
        ({"tokenizer_config": {"eos_token": "<gone>"}}, r"no token '<gone>' \(eos_token\)"),
        ({"tokenizer_config": []}, "tokenizer_config.json is not a JSON object"),
        ({"tokenizer_config": {"added_tokens_decoder": [1]}}, "added_tokens_decoder is not"),
        ({"tokenizer_config": {"added_tokens_decoder": {"x": {}}}}, "malformed entry 'x'"),
        ({"tokenizer_config": {"added_tokens_decoder": {"1": "a"}}}, "malformed entry '1'"),
        ({"config": {"vocab_size": -1}}, "vocab_size must be"),
    ],
)
def test_a_directory_that_contradicts_itself(
    tmp_path: Path, configs: dict[str, Any], message: str
) -> None:
    with pytest.raises(VocabularyError, match=message):
        token_table(save(tmp_path, byte_level(), **configs))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\ud800"])
def test_a_config_that_is_not_json(tmp_path: Path, text: str) -> None:
    folder = save(tmp_path, byte_level())
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(VocabularyError, match=r"config.json is not JSON"):
        token_table(folder)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": {"type": "BPE"}}', "[" * 100_000])
def test_a_file_that_is_no_tokenizer(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(VocabularyError, match=r"tokenizer\.json is not a tokenizer"):
        token_table(file)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="some/model: no such file"):
        token_table("some/model")
    with pytest.raises(VocabularyError, match=r"has no tokenizer\.json"):
        token_table(tmp_path)
    with pytest.raises(VocabularyError, match="NoneType is not a tokenizer"):
        token_table(None)


@pytest.mark.parametrize(
    "model",
    [
        models.Unigram([("a", 0.0)], 0, False),
        models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"),
        models.WordLevel({"a": 0}, unk_token="a"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_that_is_not_supported(model: models.Model) -> None:
    with pytest.raises(VocabularyError, match=f"model is {type(model).__name__}: supported is BPE"):
        token_table(Tokenizer(model))


def test_bpe_that_marks_words_or_drops_merges() -> None:
    with pytest.raises(VocabularyError, match="marks parts of words"):
        token_table(byte_level(end_of_word_suffix="</w>"))
    with pytest.raises(VocabularyError, match=r"dropout 0\.5"):
        token_table(byte_level(dropout=0.5))


def test_a_tokenizer_that_is_not_fast() -> None:
    class Slow:
        backend_tokenizer = None

    with pytest.raises(VocabularyError, match="Slow is not backed by the tokenizers library"):
        token_table(Slow())


def test_an_added_token_that_is_special_may_end_the_output() -> None:
    tokenizer = byte_level([AddedToken("<stop>", special=True)], end=None)
    assert token_table(tokenizer, eos_token_ids=[257]).kinds[257] is TokenKind.EOS


def test_importing_loads_no_tokenizer_library() -> None:
    code = (
        "import sys, ffwd.tokenizer\n"
        "print([m for m in ('tokenizers', 'transformers', 'torch') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
