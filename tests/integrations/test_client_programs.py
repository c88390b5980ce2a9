"""DSPy and BAML, whose programs ask for a signature or a function and not for a chat."""

import asyncio
import enum
import json
import os
import subprocess
import sys
from importlib.metadata import version
from types import ModuleType
from typing import Literal

import pytest

dspy = pytest.importorskip("dspy", reason="needs the environment clients")
# litellm would ask for prices over the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["BAML_LOG"] = "off"

import baml_py
from baml_py.errors import BamlClientHttpError
from dspy import lm15
from pydantic import BaseModel
from serve_models import Running, write_model

pytestmark = pytest.mark.engine

KEY = "secret"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("tiny"), length=16_384)
    with Running(folder, api_key=KEY, default_max_tokens=200) as running:
        yield f"{running.url}/v1"


@pytest.fixture(scope="module")
def provider(url):
    access = lm15.AccessPolicy(provider="ffwd", env_keys=("FFWD_API_KEY",), base_url=url)
    definition = lm15.ProviderDefinition.chat(access, compat=lm15.OpenAIChatCompat())
    supports = lm15.ModelSupport(function_calling=True, response_schema=True)
    lm15.register_provider(definition, supports=supports)
    yield "ffwd/tiny"
    lm15.unregister_provider("ffwd")


class Ask(dspy.Signature):
    """Choose a colour."""

    question: str = dspy.InputField()
    colour: Literal["red", "green", "blue"] = dspy.OutputField()
    coats: Literal[1, 2] = dspy.OutputField()


class TestDspy:
    """With a provider that is declared to support schemas; DSPy knows nothing of others."""

    @pytest.fixture
    def lm(self, provider, url):
        return dspy.LM(provider, api_base=url, api_key=KEY, cache=False, temperature=0)

    def test_structured(self, lm):
        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            answer = dspy.Predict(Ask)(question="Which?")
        assert answer.colour in ("red", "green", "blue")
        assert answer.coats in (1, 2)

    def test_tools(self, lm):
        class Act(dspy.Signature):
            """Paint."""

            question: str = dspy.InputField()
            tools: list[dspy.Tool] = dspy.InputField()
            calls: dspy.ToolCalls = dspy.OutputField()

        def paint(colour: Literal["red", "green"]) -> str:
            """Paint the fence."""
            return f"It is {colour}."

        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            act = dspy.Predict(Act, tool_choice="required")
            answer = act(question="Paint!", tools=[dspy.Tool(paint)])
        assert answer.calls.tool_calls
        for call in answer.calls.tool_calls:
            assert call.name == "paint"
            assert call.args["colour"] in ("red", "green")

    @pytest.mark.parametrize("field", ["colour", None])
    def test_stream(self, lm, field):
        """All chunks, or those of one field."""
        listeners = [dspy.streaming.StreamListener(signature_field_name=field)] if field else None

        async def run():
            stream = dspy.streamify(dspy.Predict(Ask), stream_listeners=listeners)
            return [part async for part in stream(question="Which?")]

        with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
            *parts, answer = asyncio.run(run())
        assert answer.colour in ("red", "green", "blue")
        assert answer.coats in (1, 2)
        if field:
            assert {part.signature_field_name for part in parts} == {"colour"}
            assert parts[-1].is_last_chunk
            # DSPy gives the JSON of the field, and what its last chunk has behind that.
            written = "".join(part.chunk for part in parts)
            assert written.startswith(json.dumps(answer.colour))
        else:
            texts = [choice.delta.content or "" for part in parts for choice in part.choices]
            assert len(texts) > 2
            written = json.loads("".join(texts))
            assert written == {"colour": answer.colour, "coats": answer.coats}

    def test_errors(self, provider, url):
        lm = dspy.LM(provider, api_base=url, api_key="wrong", cache=False, num_retries=0)
        with pytest.raises(Exception, match="API key is missing or wrong"):
            lm("Hello!")


SOURCE = """
client<llm> Chats {
  provider "openai-generic"
  options {
    base_url env.URL
    api_key env.KEY
    model "tiny"
    temperature 0
    response_format {
      type "json_schema"
      json_schema {
        name "paint"
        schema {
          type "object"
          properties {
            colour {
              enum ["Red", "Green"]
            }
            coats {
              enum [1, 2]
            }
          }
          required ["colour", "coats"]
          additionalProperties false
        }
      }
    }
  }
}
client<llm> Responses {
  provider "openai-responses"
  options {
    base_url env.URL
    api_key env.KEY
    model "tiny"
    temperature 0
  }
}
enum Colour {
  Red
  Green
}
class Paint {
  colour Colour
  coats int
}
function Choose(question: string) -> Paint {
  client Chats
  prompt #"
    {{ question }} {{ ctx.output_format }}
  "#
}
function Say(question: string) -> string {
  client Responses
  prompt #"
    {{ question }}
  "#
}
"""


# A user's program: what the generator writes is in the folder baml_client beside it.
PROGRAM = """
import asyncio
import os

from baml_client.async_client import b as waiting
from baml_client.sync_client import b
from baml_client.types import Colour, Paint
from baml_py import Collector
from baml_py.errors import BamlClientHttpError

collector = Collector()
whole = b.Choose("Which?", {"collector": collector})
assert isinstance(whole, Paint), whole
assert whole.colour in Colour and whole.coats in (1, 2), whole
assert collector.last.usage.output_tokens > 0
assert b.Say("Which?")

stream = b.stream.Choose("Which?")
parts = list(stream)
assert stream.get_final_response() == whole


async def run():
    stream = waiting.stream.Choose("Which?")
    parts = [part async for part in stream]
    return parts, await stream.get_final_response(), await waiting.Choose("Which?")


more, *answers = asyncio.run(run())
assert answers == [whole, whole], answers
# How many there are depends on time, and not on the answer.
for part in parts + more:
    assert part.colour in (None, whole.colour) and part.coats in (None, whole.coats), part
try:
    b.Choose("Which?", {"env": {"URL": os.environ["URL"], "KEY": "wrong"}})
except BamlClientHttpError as error:
    print(error.status_code)
"""


class Colour(str, enum.Enum):
    Red = "Red"
    Green = "Green"


class Paint(BaseModel):
    colour: Colour
    coats: int


class PartialPaint(BaseModel):
    colour: Colour | None = None
    coats: int | None = None


class TestBaml:
    """Its runtime, called as generated clients call it, and a program with such a client."""

    types, partial = ModuleType("types"), ModuleType("partial")
    types.Colour = partial.Colour = Colour
    types.Paint, partial.Paint = Paint, PartialPaint

    @pytest.fixture
    def call(self, url):
        def call(name, key=KEY, collectors=()):
            values = {"URL": url, "KEY": key}
            runtime = baml_py.BamlRuntime.from_files("baml_src", {"main.baml": SOURCE}, values)
            context = runtime.create_context_manager()
            result = runtime.call_function_sync(
                name, {"question": "Which?"}, context, None, None, list(collectors), values, {}
            )
            return result.cast_to(self.types, self.types, self.partial, False, runtime)

        return call

    def test_structured(self, call):
        collector = baml_py.Collector()
        assert isinstance(call("Choose", collectors=[collector]), Paint)
        assert collector.usage.output_tokens > 0

    def test_responses(self, call):
        assert call("Say")

    def test_stream(self, url):
        """Asynchronously: its other streams hold Python's lock, which the server here needs."""
        values = {"URL": url, "KEY": KEY}
        runtime = baml_py.BamlRuntime.from_files("baml_src", {"main.baml": SOURCE}, values)
        context = runtime.create_context_manager()

        async def run():
            parts = []
            stream = runtime.stream_function(
                *("Choose", {"question": "Which?"}, parts.append, context),
                *(None, None, [], values, {}),
            )
            return parts, await stream.done(context)

        parts, result = asyncio.run(run())
        whole = result.cast_to(self.types, self.types, self.partial, False, runtime)
        seen = [
            part.cast_to(self.types, self.types, self.partial, True, runtime)
            for part in parts
            if part.is_ok()
        ]
        assert isinstance(whole, Paint)
        assert seen[-1].colour == whole.colour

    def test_errors(self, call):
        with pytest.raises(BamlClientHttpError) as info:
            call("Choose", key="wrong")
        assert info.value.status_code == 401

    def test_generated(self, url, tmp_path):
        """Its streams hold Python's lock, so the program has a process of its own."""
        (tmp_path / "baml_src").mkdir()
        generator = f"""
            generator python {{
              output_type "python/pydantic"
              output_dir ".."
              version "{version("baml-py")}"
            }}
        """
        (tmp_path / "baml_src/main.baml").write_text(generator + SOURCE)
        cli = "import sys, baml_py; baml_py.invoke_runtime_cli()"
        generate = [sys.executable, "-c", cli, "generate", "--from", "baml_src"]
        subprocess.run(generate, cwd=tmp_path, check=True, capture_output=True)
        (tmp_path / "program.py").write_text(PROGRAM)
        program = subprocess.run(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=os.environ | {"URL": url, "KEY": KEY},
            capture_output=True,
            text=True,
        )
        assert program.returncode == 0, program.stderr
        assert program.stdout == "401\n"
