"""One of a few labels for each text.

python docs/examples/classification.py
"""

from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model

LABELS = ["positive", "negative", "neutral"]
TEXTS = [
    "We have a green kettle. It works very well.",
    "I bought a red lamp. It broke at once.",
    "Here is a blue chair. I have had it for a week.",
    "I got a white phone. Great service, thank you!",
    "We have a black tent. It does not work.",
]


def main() -> None:
    """Print the label of each text."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())

    *most, last = LABELS
    question = f"Which is it: {', '.join(most)} or {last}?"
    made = ffwd.generate(
        model,
        tokenizer,
        [[{"role": "user", "content": f"{text}\n{question}"}] for text in TEXTS],
        ffwd.choice(LABELS),
    )
    for text, generation in zip(TEXTS, made, strict=True):
        print(f"{generation.value:9} {text}")
    # Where the first token tells the labels apart, the rest of each is forced.
    stats = made[0].stats
    print(f"{stats.tokens} tokens in {stats.forward_passes} forward passes")


if __name__ == "__main__":
    main()
