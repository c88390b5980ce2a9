"""A random model with tokenizer and chat template in a directory, and how commands are run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from click.testing import CliRunner
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ffwd.cli.commands import group

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 480
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,9}$"},
        "status": {"enum": ["new", "paid", "shipped"]},
    },
    "required": ["name", "status"],
    "additionalProperties": False,
}
_TEXTS = [
    "Ada ordered a kettle, and it has been paid.",
    '{"name": "Grace", "status": "shipped"}',
    '{"type": "object", "properties": {"name": {"type": "string"}}}',
]
_TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(folder: Path) -> Path:
    """Byte-level BPE of 400 tokens with a chat template."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_TEXTS * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


def write_model(folder: Path, *, width: int = WIDTH) -> Path:
    """A random Llama and its tokenizer."""
    write_tokenizer(folder)
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=2,
        # Larger than usual, so that the choices depend on the context.
        initializer_range=0.2,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=2, pad_token_id=0)
    model.save_pretrained(folder)
    return folder


def ffwd(*arguments, input=None, color=False):
    """A command in this process."""
    return CliRunner().invoke(group, [str(a) for a in arguments], input=input, color=color)


def as_json(*arguments, code=0, input=None):
    """What a command writes with --json."""
    done = ffwd(*arguments, "--json", input=input)
    assert done.exit_code == code, (done.output, done.exception)
    return json.loads(done.stdout)


def process(*arguments, input=b"", cwd=None, **environment):
    """A command in a process of its own; bytes in and out."""
    paths = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-m", "ffwd.cli", *map(str, arguments)],
        input=input,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        timeout=600,
        check=False,
    )
