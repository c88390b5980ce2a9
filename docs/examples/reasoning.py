"""A model thinks first, in free text, and then answers in JSON.

python docs/examples/reasoning.py
"""

from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model


class Older(BaseModel):
    """The answer to one question."""

    older: str = Field(max_length=20)


class Younger(BaseModel):
    """The answer to the other."""

    younger: str = Field(max_length=20)


QUESTIONS: list[tuple[str, type[Older | Younger]]] = [
    ("Grace is 47 and Felix is 23. Who is older?", Older),
    ("Tom is 35 years old. Maria is 61. Who is younger?", Younger),
    ("Oscar is 72 and Nina is 58. Who is older?", Older),
]


def main() -> None:
    """Print thoughts and answers."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())

    for question, kind in QUESTIONS:
        messages = [{"role": "user", "content": f"{question} Think, then answer in JSON."}]
        # The budget is for both together: in time the thinking is closed and the answer written.
        made = ffwd.generate(
            model,
            tokenizer,
            messages,
            kind,
            reasoning=True,
            max_new_tokens=120,
            whitespace="compact",
        )
        print(question)
        print(f"  {made.reasoning.strip()}")
        print(f"  {made.value!r}")


if __name__ == "__main__":
    main()
