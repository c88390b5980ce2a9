"""A Llama with random weights and a small vocabulary, written as GGUF: nothing is downloaded."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import gguf
import numpy as np

SCHEMA = {
    "type": "object",
    "properties": {
        "customer_name": {"type": "string", "pattern": "^[A-Z][a-z]{2,7}$"},
        "order_status": {"enum": ["pending", "shipped", "delivered", "cancelled"]},
        "express_delivery": {"type": "boolean"},
        "items": {
            "type": "array",
            "items": {"enum": ["apple", "apricot", "banana", "cherry"]},
            "minItems": 1,
            "maxItems": 3,
        },
    },
    "required": ["customer_name", "order_status", "express_delivery", "items"],
    "additionalProperties": False,
}

_WIDTH, _LAYERS, _HEADS = 64, 2, 4
# llama-cpp-python leaves tokens of more than 32 bytes out of the text.
_LONGEST = 16


def write_gguf(path: Path, kind: str = "bpe", *, seed: int = 1, merges: int = 300) -> Path:
    """A model with byte-level BPE ("bpe") or SentencePiece's BPE by scores ("spm")."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"tiny {kind}")
    writer.add_context_length(1024)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(2 * _WIDTH)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    tokens = _byte_level(writer, merges) if kind == "bpe" else _sentencepiece(writer, merges)
    writer.add_vocab_size(tokens)
    writer.add_chat_template(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    for name, shape in _tensors(tokens).items():
        writer.add_tensor(
            name, _weights(name, shape, np.random.default_rng([seed, crc32(name.encode())]))
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def lines(count: int, seed: int) -> list[str]:
    """Random answers that are valid against SCHEMA."""
    rng = random.Random(seed)
    names = ["Ada", "Grace", "Alan", "Barbara", "Edsger", "Donald", "Frances", "Niklaus"]
    made = []
    for _ in range(count):
        answer = {
            "customer_name": rng.choice(names),
            "order_status": rng.choice(["pending", "shipped", "delivered", "cancelled"]),
            "express_delivery": rng.random() < 0.5,
            "items": rng.sample(["apple", "apricot", "banana", "cherry"], rng.randint(1, 3)),
        }
        made.append(json.dumps(answer, separators=(",", ":")))
    return made


def _tensors(tokens: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (tokens, _WIDTH),
        "output_norm.weight": (_WIDTH,),
        "output.weight": (tokens, _WIDTH),
    }
    for layer in range(_LAYERS):
        block = f"blk.{layer}."
        shapes |= {f"{block}{name}_norm.weight": (_WIDTH,) for name in ("attn", "ffn")}
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"{block}{name}.weight"] = (_WIDTH, _WIDTH)
        shapes[f"{block}ffn_gate.weight"] = (2 * _WIDTH, _WIDTH)
        shapes[f"{block}ffn_up.weight"] = (2 * _WIDTH, _WIDTH)
        shapes[f"{block}ffn_down.weight"] = (_WIDTH, 2 * _WIDTH)
    return shapes


def _weights(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name.endswith("norm.weight"):
        return np.ones(shape, dtype=np.float32)
    # Larger than usual, so that the choices depend on the context.
    return rng.normal(0.0, 0.25, shape).astype(np.float32)


def _byte_level(writer: gguf.GGUFWriter, merges: int) -> int:
    characters = _byte_characters()
    words = Counter(
        tuple(characters[byte] for byte in word.encode())
        for line in lines(400, seed=1)
        for word in _words(line)
    )
    learned = _learn(words, merges)
    tokens = [*characters, *(a + b for a, b in learned)]
    special = ["<s>", "</s>", "<|user|>", "<|assistant|>"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*tokens, *special])
    writer.add_token_types(
        [gguf.TokenType.NORMAL] * len(tokens) + [gguf.TokenType.CONTROL] * len(special)
    )
    writer.add_token_merges([f"{a} {b}" for a, b in learned])
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens) + 1)
    writer.add_add_bos_token(True)
    return len(tokens) + len(special)


def _sentencepiece(writer: gguf.GGUFWriter, merges: int) -> int:
    texts = [line.replace(" ", "▁") for line in lines(60, seed=1)]
    letters = sorted({"▁"} | set("".join(texts)) | {chr(c) for c in range(33, 127)})
    learned = [a + b for a, b in _learn(Counter(tuple("▁" + text) for text in texts), merges)]
    special = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>"]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    tokens = [*special, *(f"<0x{byte:02X}>" for byte in range(256)), *learned, *letters]
    types = [gguf.TokenType.UNKNOWN, *[control] * 4, *[gguf.TokenType.BYTE] * 256]
    types += [normal] * (len(learned) + len(letters))
    # In the order in which they were learned; letters after all that is longer.
    scores = [0.0] * 261 + [-float(rank) for rank in range(len(learned) + len(letters))]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    return len(tokens)


def _byte_characters() -> list[str]:
    """The character that byte-level BPE writes for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def _words(line: str) -> list[str]:
    """Runs of letters and of other characters, as GPT-2 cuts them."""
    found = [""]
    for character in line:
        if found[-1] and found[-1][-1].isalpha() != character.isalpha():
            found.append("")
        found[-1] += character
    return found


def _learn(words: Counter[tuple[str, ...]], merges: int) -> list[tuple[str, str]]:
    """Byte-pair encoding: the most frequent pair, again and again."""
    learned: list[tuple[str, str]] = []
    made: set[str] = set()
    while len(learned) < merges:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in pairwise(word):
                if pair[0] + pair[1] not in made and len(pair[0] + pair[1]) <= _LONGEST:
                    pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        learned.append(best)
        made.add(best[0] + best[1])
        words = Counter({_merged(word, best): count for word, count in words.items()})
    return learned


def _merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    parts: list[str] = []
    place = 0
    while place < len(word):
        if word[place : place + 2] == pair:
            parts.append(pair[0] + pair[1])
            place += 2
        else:
            parts.append(word[place])
            place += 1
    return tuple(parts)
