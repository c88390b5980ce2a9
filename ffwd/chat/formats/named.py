"""The named formats, and which of them a model's name suggests."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ffwd.chat.errors import FormatError
from ffwd.chat.formats import ChatFormat
from ffwd.chat.formats.tokenizer import FormatTokenizer
from ffwd.chat.messages import as_list
from ffwd.chat.mistral import MistralFormat
from ffwd.chat.prompt import Prompt

LLAMA2 = ChatFormat(
    name="llama2",
    bos="<s>",
    eos="</s>",
    system_prefix="<<SYS>>\n",
    system_suffix="\n<</SYS>>\n\n",
    user_prefix="[INST] ",
    user_suffix=" [/INST]",
    assistant_prefix=" ",
    assistant_suffix=" ",
    generation_prompt="",
    stop=("</s>", "[/INST]"),
    system_placement="first",
    bos_every_turn=True,
    strip=True,
    control_tokens=("<s>", "</s>"),
)
"""The system prompt is part of the user's first message; every turn begins with `<s>`."""

CODE_LLAMA = replace(LLAMA2, name="codellama", stop=(*LLAMA2.stop, "```"))
"""As Llama 2; an answer ends before it opens or closes a block of code."""

LLAMA3 = ChatFormat(
    name="llama3",
    bos="<|begin_of_text|>",
    eos="<|eot_id|>",
    system_prefix="<|start_header_id|>system<|end_header_id|>\n\n",
    system_suffix="<|eot_id|>",
    user_prefix="<|start_header_id|>user<|end_header_id|>\n\n",
    user_suffix="<|eot_id|>",
    assistant_prefix="<|start_header_id|>assistant<|end_header_id|>\n\n",
    stop=("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>"),
    strip=True,
    control_tokens=(
        *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>"),
        *("<|eot_id|>", "<|eom_id|>"),
    ),
)

CHATML = ChatFormat(
    name="chatml",
    eos="<|im_end|>",
    system_prefix="<|im_start|>system\n",
    system_suffix="<|im_end|>",
    user_prefix="<|im_start|>user\n",
    user_suffix="<|im_end|>",
    assistant_prefix="<|im_start|>assistant\n",
    name_prefix=" name=",
    separator="\n",
    stop=("<|im_end|>", "<|im_start|>", "<|endoftext|>"),
    bos_of_tokenizer=True,
    control_tokens=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
)

ALPACA = ChatFormat(
    name="alpaca",
    user_prefix="### Instruction:\n",
    assistant_prefix="### Response:\n",
    separator="\n\n",
    stop=("### Instruction:",),
    bos_of_tokenizer=True,
    if_missing="text",
)
"""Text only."""

VICUNA = ChatFormat(
    name="vicuna",
    eos="</s>",
    system_suffix=" ",
    user_prefix="USER: ",
    user_suffix=" ",
    assistant_prefix="ASSISTANT: ",
    generation_prompt="ASSISTANT:",
    stop=("</s>",),
    default_system=(
        "A chat between a curious user and an artificial intelligence assistant. The assistant "
        "gives helpful, detailed, and polite answers to the user's questions."
    ),
    bos_of_tokenizer=True,
    control_tokens=("</s>",),
)
"""Version 1.1; a system prompt takes the place of its preamble. It needs a vocabulary with `</s>`:
nothing else ends an answer."""

ORCA = ChatFormat(
    name="orca",
    system_prefix="System: ",
    user_prefix="User: ",
    assistant_prefix="Assistant: ",
    generation_prompt="Assistant:",
    separator="\n",
    stop=("<|im_end|>", "\nUser:"),
    bos_of_tokenizer=True,
    control_tokens=("<|im_end|>",),
    if_missing="text",
)
"""The older form, in lines; Orca 2 is `CHATML`."""

GPT4 = replace(CHATML, name="gpt4", stop=("<|endoftext|>",))
"""How GPT-4 is given conversations is not public; this has the shape of ChatML. The public
vocabularies lack its control tokens, so that it is refused with them."""

CLAUDE = ChatFormat(
    name="claude",
    user_prefix="\n\nHuman: ",
    assistant_prefix="\n\nAssistant: ",
    generation_prompt="\n\nAssistant:",
    stop=("\n\nHuman:", "\n\nAssistant:"),
    bos_of_tokenizer=True,
    if_missing="text",
)
"""The form of Claude 2 and before; today's API takes messages."""

CUSTOM = ChatFormat()
"""All fields are empty: `replace(CUSTOM, name=..., user_prefix=...)`."""


@dataclass(frozen=True, kw_only=True)
class MistralNamedFormat(ChatFormat):
    """Mistral's format by name; the tokenizer determines its version.

    The fields are those of V2 and V3 with SentencePiece; prompts are rendered by `MistralFormat`.
    """

    def render(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: FormatTokenizer,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> Prompt:
        """Return the prompt of the version that `MistralFormat.for_tokenizer` finds.

        The conversation must be valid for `validate`, and be followed by an answer.
        """
        if add_generation_prompt is not None and add_generation_prompt == continue_final_message:
            raise FormatError(
                "a prompt of Mistral's is answered, or its last message is continued: "
                "add_generation_prompt is what continue_final_message is not"
            )
        given = as_list(messages)
        self.validate(given, continue_final_message=continue_final_message)
        return MistralFormat.for_tokenizer(tokenizer).render(
            given, tokenizer=tokenizer, continue_final_message=continue_final_message
        )


MISTRAL = MistralNamedFormat(
    name="mistral",
    bos="<s>",
    eos="</s>",
    system_suffix="\n\n",
    user_prefix="[INST] ",
    user_suffix="[/INST]",
    assistant_prefix=" ",
    generation_prompt="",
    stop=("</s>", "[/INST]"),
    system_placement="last",
    control_tokens=("<s>", "</s>", "[INST]", "[/INST]"),
)

FORMATS: Mapping[str, ChatFormat] = MappingProxyType(
    {
        known.name: known
        for known in (
            *(LLAMA2, CODE_LLAMA, LLAMA3, MISTRAL, CHATML, ALPACA),
            *(VICUNA, ORCA, GPT4, CLAUDE, CUSTOM),
        )
    }
)
"""The named formats by name."""

# In this order: `llama` would match the names before it.
_NAMES: tuple[tuple[str, ChatFormat], ...] = (
    (r"llama-?3", LLAMA3),
    (r"code-?llama", CODE_LLAMA),
    (r"llama-?2", LLAMA2),
    (r"llama", LLAMA2),
    (r"mistral|mixtral", MISTRAL),
    (r"gpt-?4", GPT4),
    (r"alpaca", ALPACA),
    (r"vicuna", VICUNA),
    (r"orca", ORCA),
    (r"claude", CLAUDE),
)


@dataclass(frozen=True)
class DetectedFormat:
    """A format that a model's name suggests."""

    format: ChatFormat
    matched: str | None
    """What of the name it was found by; None: nothing, and ChatML is what most others have."""
    guessed: bool = True
    """Always: a name proves nothing. TinyLlama, Llama 4, and a DeepSeek-R1 that was distilled into
    Llama are called `llama` and have other formats. A model's own template always wins."""


def detect(model: str) -> DetectedFormat:
    """Return the format that the name of a model suggests, ignoring case.

    >>> detect("meta-llama/Meta-Llama-3-8B-Instruct").format.name
    'llama3'
    """
    for pattern, known in _NAMES:
        found = re.search(pattern, model.lower())
        if found is not None:
            return DetectedFormat(known, found.group())
    return DetectedFormat(CHATML, None)
