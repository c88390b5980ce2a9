"""Models whose distribution over the texts of a small grammar is found by enumeration."""

import math
from collections import Counter
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import ffwd
from ffwd.chat import Start

PAD, BOS, EOS = 0, 1, 2

BRACKETS = ffwd.lark('start: pair*\npair: "(" inner* ")"\ninner: "()"')
# The model opens brackets and seldom closes them.
OPENING = {None: {"(": 0.75, ")": 0.05, "": 0.2}}
TWO_LETTERS = {
    None: {"a": 0.5, "b": 0.5},
    "a": {"a": 0.5, "b": 0.02, "": 0.48},
    "b": {"a": 0.02, "b": 0.02, "": 0.96},
}
# After an "a" the model does not want what the grammar requires.
LETTERS = ffwd.regex("ab{1,2}|ba?b?")
CASES = {"brackets": (OPENING, BRACKETS, 7), "letters": (TWO_LETTERS, LETTERS, 5)}
"""The probabilities for `bigrams`, the grammar, and the number of tokens."""


def letters():
    """A tokenizer whose tokens are bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {token: place for place, token in enumerate(["<pad>", "<s>", "</s>", *alphabet])}
    core = Tokenizer(models.BPE(ids, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def bigrams(tokenizer, table):
    """A Llama whose next token depends on the last one alone.

    `table` has for a character, or None for all others, the probabilities of the next characters;
    "" is the end. Attention adds nothing, and the head reads the embedding of the last token.
    """
    width = len(tokenizer)
    size = -(-width // 8) * 8
    config = LlamaConfig(
        vocab_size=width,
        hidden_size=size,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=1,
        max_position_embeddings=256,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
    )
    model = LlamaForCausalLM(config).eval()
    logs = torch.full((width, width), -40.0)
    for last, following in {None: {}, **table}.items():
        rows = range(width) if last is None else [tokenizer.convert_tokens_to_ids(last)]
        for row in rows:
            logs[row] = -40.0
            for token, share in following.items():
                column = tokenizer.convert_tokens_to_ids(token) if token else EOS
                logs[row, column] = math.log(share)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.zero_()
        model.model.embed_tokens.weight[:, :width] = torch.eye(width)
        # The norm before the head scales a unit vector to this length.
        model.lm_head.weight[:, :width] = logs.T / math.sqrt(size)
    return model


@dataclass
class Exact:
    """Distributions over the token sequences of a grammar, and the probability of all of it."""

    given: dict[tuple[int, ...], float]
    masked: dict[tuple[int, ...], float]
    evidence: float


@torch.no_grad()
def exact(model, grammar, prompt, *, max_tokens, temperature=1.0):
    """Follow every path that masks and forced tokens leave."""
    found, masked = {}, {}
    matcher = Start(grammar=grammar, prompt_ids=tuple(prompt)).matcher(max_tokens=max_tokens)
    open_paths = [((), 0.0, 0.0, matcher)]
    while open_paths:
        path, log_p, log_q, matcher = open_paths.pop()
        if matcher.is_terminated():
            found[path], masked[path] = log_p, math.exp(log_q)
            continue
        logits = model(torch.tensor([[*prompt, *path]])).logits[0, -1].double() / temperature
        logs = torch.log_softmax(logits, dim=-1)
        allowed = matcher.fast_forward_tokens()[:1] or matcher.allowed_token_ids()
        total = logs[allowed].logsumexp(0).item()
        for token in allowed:
            own = matcher.fork()
            assert own.accept_token(token)
            log = logs[token].item()
            open_paths.append(((*path, token), log_p + log, log_q + log - total, own))
    evidence = sum(map(math.exp, found.values()))
    given = {path: math.exp(log) / evidence for path, log in found.items()}
    assert abs(sum(masked.values()) - 1) < 1e-6
    return Exact(given, masked, evidence)


def distance(one, other):
    """The total variation distance."""
    return sum(abs(one.get(path, 0.0) - other.get(path, 0.0)) for path in {*one, *other}) / 2


def weighted(particles):
    """The distribution that particles stand for."""
    shares = Counter()
    for particle in particles:
        shares[particle.tokens] += particle.probability
    return shares


def uniform(particles):
    """The distribution of particles without their weights."""
    return {k: n / len(particles) for k, n in Counter(p.tokens for p in particles).items()}


def compiled(tokenizer, model, grammar):
    vocabulary = ffwd.tokenizer.load(tokenizer).vocabulary(
        vocab_size=model.config.vocab_size, eos_token_ids=[EOS]
    )
    return ffwd.compile(grammar, vocabulary)
