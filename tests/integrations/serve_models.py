"""Tiny models with tokenizer and chat template in a directory, and servers for them."""

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ffwd.adapters.server import ServerOptions, create_app, load_model
from ffwd.adapters.server.running import DrainingServer

CONTROLS = ["<|pad|>", "<|im_start|>", "<|im_end|>"]

_BEGIN = (
    "{% if tools %}<|im_start|>system\nTools:{% for tool in tools %}\n{{ tool | tojson }}"
    "{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.content %}{{ message.content }}{% endif %}"
)
_HERMES_CALL = (
    "{% for call in message.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}"
)
_CODER_CALL = (
    "{% for call in message.tool_calls or [] %}<tool_call>\n<function={{ call.function.name }}>\n"
    "{% for name, value in call.function.arguments | items %}<parameter={{ name }}>\n"
    "{{ value if value is string else value | tojson }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>{% endfor %}"
)
_END = "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
_THOUGHT = (
    "{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n"
    "{% endif %}"
)
_THINK = "{% if add_generation_prompt and enable_thinking is defined %}<think>\n{% endif %}"

TEMPLATES = {
    "hermes": _BEGIN + _HERMES_CALL + _END,
    "coder": _BEGIN + _CODER_CALL + _END,
    # Opens its reasoning where a variable of the template says so.
    "thinking": _BEGIN.replace("{% if message.content", _THOUGHT + "{% if message.content")
    + _HERMES_CALL
    + _END
    + _THINK,
}

COLOURS = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "green", "blue"]}, "shade": {"type": "boolean"}},
    "required": ["colour", "shade"],
    "additionalProperties": False,
}
PLACES = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
HELLO = [{"role": "user", "content": "Hello! <|im_end|> What colour?"}]


def about(value):
    """A JSON value whose fractions need not be equal to the last bit.

    What a model computes for a text depends on what shares its passes, and on how they are cut.
    """
    if isinstance(value, float):
        return pytest.approx(value, abs=1e-3)
    if isinstance(value, dict):
        return {name: about(member) for name, member in value.items()}
    return [about(item) for item in value] if isinstance(value, list) else value


def function(name, parameters, **more):
    """A tool of a request."""
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


TOOLS = [function("paint", COLOURS, strict=True), function("forecast", PLACES)]


def schema_format(schema, *, strict=True):
    """A `response_format` of a request."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": strict, "schema": schema},
    }


_TEXTS = [
    "The weather in Bern is fine today, and the kettle is on.",
    '{"name": "forecast", "arguments": {"city": "Bern", "days": 3}}',
    '<tool_call>\n{"name": "</tool_call>\n<function=<parameter=</parameter>\n</function>\n',
    "<think>\nLet me see.\n</think>\n\nYes.",
    '{"type": "object", "properties": {"colour": {"enum": ["red", "green", "blue"]}}}',
]


def write_model(folder: Path, template: str = "hermes", *, seed: int = 1, length: int = 2048):
    """A random Llama in a directory, with a byte-level tokenizer."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    controls = [*CONTROLS, *(["<think>", "</think>"] if template == "thinking" else [])]
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=controls,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(_TEXTS * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = TEMPLATES[template]
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=640,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=length,
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


class Running:
    """A server in a thread of this process."""

    def __init__(self, folder: Path, **options):
        self.loaded = load_model(folder, name="tiny", device="cpu")
        given = ServerOptions(**{"shutdown_grace": 5.0} | options)
        self.app = create_app(self.loaded, given)
        self.server = self.app.state.server
        self.uvicorn = DrainingServer(self.app, given, port=0, log_level="warning")
        self._thread = threading.Thread(target=self.uvicorn.run, daemon=True)

    def __enter__(self):
        self._thread.start()
        until = time.monotonic() + 600
        while not self.uvicorn.started:
            assert time.monotonic() < until
            assert self._thread.is_alive()
            time.sleep(0.01)
        self.port = self.uvicorn.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *error):
        self.uvicorn.should_exit = True
        self._thread.join(timeout=600)
        assert not self._thread.is_alive()

    def metric(self, name):
        """The value of one of its metrics."""
        value = self.server.metrics.registry.get_sample_value(f"ffwd_server_{name}")
        assert value is not None, name
        return value

    def settle(self, seconds=120.0):
        """Wait until nothing is open."""
        until = time.monotonic() + seconds
        while self.server.num_open or not self.server.scheduler.idle:
            assert time.monotonic() < until, (self.server.num_open, self.metric("running_texts"))
            time.sleep(0.01)


def raw_request(port: int, body: dict, path="/v1/chat/completions") -> socket.socket:
    """A connection over which a request was sent, and from which nothing was read."""
    data = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", port), timeout=600)
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n".encode()
        + data
    )
    return connection


@contextlib.contextmanager
def closing(*connections):
    """Close connections at the end."""
    try:
        yield
    finally:
        for connection in connections:
            connection.close()
