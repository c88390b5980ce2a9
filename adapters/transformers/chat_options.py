"""The options of `ffwd.generate`, as what answers gets them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, cast

from transformers import GenerationConfig

from ffwd.adapters.transformers.fast_forward import FastForward
from ffwd.adapters.transformers.report import GenerationReport
from ffwd.grammar import Writing, WritingOptions

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """The options of a call besides messages and schema; `ffwd.generate` describes each.

    Attributes:
        writing: How JSON is written, where a schema is to be told: options of `json_schema`.
        generate_options: What is for `model.generate`.

    """

    max_new_tokens: int | None = None
    complete: bool = True
    reasoning: bool = False
    canonical: bool = False
    fast_forward: bool | FastForward = True
    tools: Sequence[Any] | None = None
    template_variables: Mapping[str, Any] | None = None
    report: GenerationReport | None = None
    masses: bool = False
    should_stop: Stop | None = None
    writing: WritingOptions = field(default_factory=WritingOptions)
    generate_options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any], model: Any) -> "ChatOptions":
        """Split keyword arguments into these options and those of `model.generate`.

        Raises:
            TypeError: There is no such option, and there is one that is spelled much like it.

        """
        names = {each.name for each in fields(cls)} - {"writing", "generate_options"}
        options = {each.name for each in fields(Writing)}
        own = {name: value for name, value in given.items() if name in names}
        writing = {name: one for name, one in given.items() if name in options and one is not None}
        others = {name: one for name, one in given.items() if name not in names | options}
        _check_spelling(others, names | options, model)
        return cls(**own, writing=cast(WritingOptions, writing), generate_options=others)


def _check_spelling(others: Mapping[str, Any], own: set[str], model: Any) -> None:
    """Refuse what is none of the names that a model takes, and nearly one of them."""
    known = own | set(vars(GenerationConfig()))
    unknown = others.keys() - known
    if not unknown:
        return
    for method in ("generate", "forward", "prepare_inputs_for_generation"):
        if (function := getattr(model, method, None)) is not None:
            unknown -= inspect.signature(function).parameters.keys()
    for name in sorted(unknown):
        # An option that resembles none may belong to a model's own code, which checks it.
        if close := get_close_matches(name, sorted(known), n=1, cutoff=0.8):
            raise TypeError(f"there is no option {name!r}: did you mean {close[0]!r}?")
