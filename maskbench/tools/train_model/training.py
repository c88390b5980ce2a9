"""The model and its training."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from ffwd.model.texts import Words, conversation, simple_extraction
from maskbench.tools.train_model.copying import ROPE_THETA, begin_with_copying
from maskbench.tools.train_model.tokenizer import CONTEXT, START

IGNORED = -100


@dataclass(frozen=True)
class TrainingSettings:
    """How the model is trained."""

    steps: int = 6000
    warm_up: int = 50
    """Steps in which the learning rate rises."""
    decay: int = 1500
    """Last steps, in which it falls to nothing."""
    simple_steps: int = 600
    """First steps, in which all texts are the simplest ones; later every third one is."""
    batch_tokens: int = 1200
    """Of prompts and answers together, padding included; in each process."""
    processes: int = 2
    """Each has batches of its own, and their gradients are averaged."""
    rate: float = 4e-3
    width: int = 96
    layers: int = 4
    heads: int = 3
    mantissa_bits: int = 4
    """Of each weight that is written."""
    seed: int = 0


@dataclass(frozen=True)
class Batch:
    """Conversations side by side, padded on the right."""

    ids: Tensor
    labels: Tensor
    """The next token of each place that is part of an answer; elsewhere `IGNORED`."""


def encode(tokenizer: Any, words: Words, *, simple: bool) -> tuple[list[int], list[int]]:
    """Return a conversation as ids, and with `IGNORED` outside the model's messages."""
    example = simple_extraction(words) if simple else conversation(words)
    text = tokenizer.apply_chat_template(
        [*example.messages, {"role": "assistant", "content": example.answer}],
        tools=example.tools or None,
        tokenize=False,
    )
    core = tokenizer.backend_tokenizer
    ids = core.encode(text, add_special_tokens=False).ids
    opening = core.encode(f"{START}assistant\n", add_special_tokens=False).ids
    end = tokenizer.eos_token_id
    wanted, speaks = [], False
    for place, token in enumerate(ids):
        wanted.append(token if speaks else IGNORED)
        if token == end:
            speaks = False
        elif ids[max(place + 1 - len(opening), 0) : place + 1] == opening:
            speaks = True
    return ids, wanted


def batches(tokenizer: Any, settings: TrainingSettings, process: int = 0) -> Iterator[Batch]:
    """Return batches without end. Those in one batch are about as long as each other."""
    words = Words(random.Random(f"training {settings.seed} {process}"))
    pad = tokenizer.pad_token_id
    step = 0
    while True:
        share = 1.0 if step < settings.simple_steps else 1 / 3
        pool = [encode(tokenizer, words, simple=words.source.random() < share) for _ in range(500)]
        pool.sort(key=lambda one: len(one[0]))
        cut: list[list[tuple[list[int], list[int]]]] = [[]]
        for one in pool:
            if cut[-1] and len(one[0]) * (len(cut[-1]) + 1) > settings.batch_tokens:
                cut.append([])
            cut[-1].append(one)
        words.source.shuffle(cut)
        for rows in cut:
            width = max(len(ids) for ids, _ in rows) - 1
            inputs = torch.full((len(rows), width), pad)
            labels = torch.full((len(rows), width), IGNORED)
            for row, (ids, wanted) in enumerate(rows):
                inputs[row, : len(ids) - 1] = torch.tensor(ids[:-1])
                labels[row, : len(ids) - 1] = torch.tensor(wanted[1:])
            yield Batch(inputs, labels)
            step += 1


def new_model(tokenizer: Any, settings: TrainingSettings) -> Any:
    """Return an untrained model."""
    torch.manual_seed(settings.seed)
    # The attention that is written out is the faster one here, by far, for bfloat16 on a CPU.
    model = LlamaForCausalLM._from_config(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=settings.width,
            intermediate_size=3 * settings.width,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            num_key_value_heads=settings.heads,
            max_position_embeddings=CONTEXT,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=True,
            rope_parameters={"rope_type": "default", "rope_theta": ROPE_THETA},
        ),
        attn_implementation="eager",
    )
    begin_with_copying(model)
    return model


def loss_of(model: Any, batch: Batch) -> Tensor:
    """Return the mean loss in nats of the tokens of the answers."""
    wanted = batch.labels != IGNORED
    # The output layer sees only the places that count: it is a good part of the work.
    hidden = model.model(input_ids=batch.ids, use_cache=False).last_hidden_state[wanted]
    return functional.cross_entropy(model.lm_head(hidden).float(), batch.labels[wanted])


def rate_at(step: int, settings: TrainingSettings) -> float:
    """Return the share of the highest learning rate: up, level, and down again."""
    up, down = (step + 1) / settings.warm_up, (settings.steps - step) / settings.decay
    return max(min(up, 1.0, down), 0.0)


def _average_gradients(model: Any) -> None:
    """Make the gradients of all processes their mean."""
    gradients = [one.grad for one in model.parameters()]
    flat = torch.cat([one.flatten() for one in gradients])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    for one, mean in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
        one.copy_(mean.view_as(one))


def train(
    tokenizer: Any,
    settings: TrainingSettings,
    report: Callable[[int, float, Any], None],
    process: int = 0,
) -> Any:
    """Train a model in this process, together with the others if there are any.

    Args:
        tokenizer: Its tokenizer.
        settings: The same in all processes.
        report: Called every 50 steps, in the first process: how many there were, their mean loss,
            and the model as it is.
        process: Which one this is.

    Returns:
        The trained model, in float32 on the CPU.

    """
    model = new_model(tokenizer, settings)
    matrices = [
        one for name, one in model.named_parameters() if one.ndim == 2 and "embed" not in name
    ]
    chosen = {id(one) for one in matrices}
    rest = [one for one in model.parameters() if id(one) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Muon(
            matrices, lr=settings.rate, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, lr=settings.rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(one, lambda step: rate_at(step, settings))
        for one in optimizers
    ]
    model.train()
    recent = 0.0
    for step, batch in zip(
        range(settings.steps), batches(tokenizer, settings, process), strict=False
    ):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, batch)
        loss.backward()
        if settings.processes > 1:
            _average_gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        recent += loss.item()
        if (step + 1) % 50 == 0:
            if process == 0:
                report(step + 1, recent / 50, model)
            recent = 0.0
    return model.eval()
