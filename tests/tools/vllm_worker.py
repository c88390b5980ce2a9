"""vLLM's own parsers, in a process of their own: lines of JSON in, lines of JSON out.

Run with the packages of `make parsers` on the path. A line is {"parser", "tools", "vocabulary",
"text"}; for the parser `openai`, text becomes ids by openai-harmony's own encoding.
"""

import functools
import json
import logging
import sys

logging.disable(logging.CRITICAL)

from openai_harmony import HarmonyEncodingName, load_harmony_encoding  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import (  # noqa: E402
    ChatCompletionRequest,
)
from vllm.tool_parsers import ToolParserManager  # noqa: E402


class Vocabulary:
    """What parsers ask of a tokenizer: the ids of control tokens."""

    def __init__(self, names):
        self._ids = {name: index for index, name in enumerate(names)}

    def get_vocab(self):
        return self._ids


@functools.cache
def harmony():
    return load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def parse(line):
    request = ChatCompletionRequest(
        messages=[{"role": "user", "content": "question"}], model="model", tools=line["tools"]
    )
    parser = ToolParserManager.get_tool_parser(line["parser"])(
        Vocabulary(line["vocabulary"]), request.tools
    )
    options = {}
    if line["parser"] == "openai":
        options["token_ids"] = harmony().encode(line["text"], allowed_special="all")
    found = parser.extract_tool_calls(line["text"], request, **options)
    return {
        "content": found.content,
        "calls": [[call.function.name, call.function.arguments] for call in found.tool_calls],
    }


sys.stdout, answers = sys.stderr, sys.stdout
for line in sys.stdin:
    try:
        answer = parse(json.loads(line))
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=answers, flush=True)
