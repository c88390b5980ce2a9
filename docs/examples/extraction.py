"""Records out of short texts: a class is the schema, and its objects come back.

python docs/examples/extraction.py
"""

from typing import Any, Literal

from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model


class Person(BaseModel):
    """A person who introduces themselves."""

    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=130)
    city: str = Field(max_length=40)


class Account(BaseModel):
    """A user of a service. In JSON the first key is written as the service writes it."""

    user_name: str = Field(alias="userName", max_length=40)
    plan: Literal["free", "basic", "premium"]
    active: bool


PEOPLE = [
    "Grace is 47 years old. Grace lives in Lisbon.",
    "My name is Felix. I am 23 years old. I live in Tokyo.",
    "This is Maria, aged 61. The home town is Oslo.",
]
ACCOUNTS = [
    "The user Linda has the premium plan. The account is active.",
    "The user called Tom signed in. The plan is basic. The account is closed.",
]


def conversation(text: str, kind: type[BaseModel]) -> list[dict[str, Any]]:
    """Return a request for a record, with the keys to help the model."""
    keys = ", ".join(kind.model_json_schema()["properties"])
    return [{"role": "user", "content": f"{text}\nKeys: {keys}"}]


def main() -> None:
    """Print each text and its record."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())

    for kind, texts in ((Person, PEOPLE), (Account, ACCOUNTS)):
        # Several conversations are one batch. The model in the box writes JSON without spaces.
        made = ffwd.generate(
            model,
            tokenizer,
            [conversation(text, kind) for text in texts],
            kind,
            max_new_tokens=100,
            whitespace="compact",
        )
        for text, generation in zip(texts, made, strict=True):
            print(text)
            print(f"  {generation.value!r}")
        stats = made[0].stats
        print(
            f"{stats.tokens} tokens, {stats.forced_tokens} of them forced,"
            f" {stats.forward_passes} forward passes\n"
        )


if __name__ == "__main__":
    main()
