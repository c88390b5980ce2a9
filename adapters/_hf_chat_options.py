"""The options of `ffwd.generate`, as what answers gets them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ffwd.adapters._hf_fast_forward import FastForward
from ffwd.adapters._hf_report import GenerationReport
from ffwd.grammar import PropertyOrder, Whitespace

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """What one call asks for beside messages and schema; `ffwd.generate` says what each means.

    Attributes:
        generate_options: What is for `model.generate`.

    """

    max_new_tokens: int | None = None
    complete: bool = True
    reasoning: bool = False
    whitespace: Whitespace | None = None
    property_order: PropertyOrder | None = None
    canonical: bool = False
    fast_forward: bool | FastForward = True
    tools: Sequence[Any] | None = None
    template_variables: Mapping[str, Any] | None = None
    report: GenerationReport | None = None
    should_stop: Stop | None = None
    generate_options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "ChatOptions":
        """Keyword arguments: those with the names of these, and others for `model.generate`."""
        names = {each.name for each in fields(cls)} - {"generate_options"}
        own = {name: value for name, value in given.items() if name in names}
        others = {name: value for name, value in given.items() if name not in names}
        return cls(**own, generate_options=others)

    @property
    def writing(self) -> dict[str, Any]:
        """How JSON is written, where a schema is to be told."""
        given = {"whitespace": self.whitespace, "property_order": self.property_order}
        return {name: value for name, value in given.items() if value is not None}
