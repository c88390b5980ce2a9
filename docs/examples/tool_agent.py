"""An agent: the model calls functions until it has what it needs for an answer.

python docs/examples/tool_agent.py
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model

MAX_TURNS = 4
QUESTIONS = [
    "How is the weather in Lisbon?",
    "Where is order 4821?",
    "What is 17 plus 25?",
]


async def get_weather(city: str) -> dict[str, Any]:
    """Return the answer of a weather service."""
    await asyncio.sleep(0.01)
    return {"degrees": 24, "sky": "sunny"} if city == "Lisbon" else {"degrees": 9, "sky": "rainy"}


async def find_order(orderId: int) -> dict[str, Any]:  # noqa: N803 - the tool's own name
    """Return the entry of an order database."""
    await asyncio.sleep(0.01)
    return {"status": "paid" if orderId == 4821 else "new"}


async def add(a: int, b: int) -> dict[str, Any]:
    """Return a sum that no small language model should compute itself."""
    return {"sum": a + b}


FUNCTIONS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "get_weather": get_weather,
    "find_order": find_order,
    "add": add,
}


def tool(name: str, about: str, **parameters: str) -> dict[str, Any]:
    """Return a tool in the form of OpenAI's interface."""
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in parameters.items()},
                "required": list(parameters),
                "additionalProperties": False,
            },
        },
    }


TOOLS = [
    tool("get_weather", "The weather in a city.", city="string"),
    tool("find_order", "An order by its number.", orderId="integer"),
    tool("add", "Adds two numbers.", a="integer", b="integer"),
]


@dataclass
class Turn:
    """The model's output: text, or calls of functions."""

    text: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)

    def take(self, event: ffwd.Event) -> None:
        """Add what has become certain."""
        if event.kind == "content" and event.action == "delta":
            self.text += event.text or ""
        elif event.kind == "tool_call" and event.action == "begin":
            self.calls.append({"name": event.name, "arguments": ""})
        elif event.kind == "tool_arguments" and event.action == "delta":
            self.calls[-1]["arguments"] += event.text or ""


class Agent:
    """A model with functions that it may call."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer
        # How this model writes calls is read off its chat template.
        self.grammar = ffwd.openai.tools(TOOLS, "auto", format=tokenizer)

    async def write(self, messages: list[dict[str, Any]]) -> Turn:
        """Generate an answer. No parser looks for calls, because the grammar marks them."""
        turn = Turn()
        with ffwd.stream(
            self.model, self.tokenizer, messages, self.grammar, tools=TOOLS, max_new_tokens=120
        ) as stream:
            async for chunk in stream:
                for event in chunk.events:
                    turn.take(event)
        return turn

    async def ask(self, question: str) -> str:
        """Return the answer to a question, after as many calls as necessary.

        Raises:
            RuntimeError: The model is still calling functions after `MAX_TURNS` answers.

        """
        messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        for _ in range(MAX_TURNS):
            turn = await self.write(messages)
            if not turn.calls:
                return turn.text.strip()
            # The grammar saw to it that names are known and arguments fit.
            arguments = [json.loads(call["arguments"]) for call in turn.calls]
            results = await asyncio.gather(
                *(
                    FUNCTIONS[call["name"]](**given)
                    for call, given in zip(turn.calls, arguments, strict=True)
                )
            )
            made = [
                {"type": "function", "function": {"name": call["name"], "arguments": given}}
                for call, given in zip(turn.calls, arguments, strict=True)
            ]
            messages.append({"role": "assistant", "content": turn.text, "tool_calls": made})
            for call, result in zip(turn.calls, results, strict=True):
                print(f"  {call['name']}({call['arguments']}) = {json.dumps(result)}")
                messages.append({"role": "tool", "content": json.dumps(result)})
        raise RuntimeError(f"no answer after {MAX_TURNS} turns; the last calls: {turn.calls}")


async def main() -> None:
    """Ask each question."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())
    agent = Agent(model, tokenizer)
    for question in QUESTIONS:
        print(question)
        print(f"  {await agent.ask(question)}")


if __name__ == "__main__":
    asyncio.run(main())
