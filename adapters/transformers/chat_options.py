"""The options of `ffwd.generate`, as what answers gets them."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, cast, get_args

from transformers import GenerationConfig

from ffwd.adapters.transformers.fast_forward import FastForward
from ffwd.adapters.transformers.particles import NEUTRAL, Sampling
from ffwd.adapters.transformers.report import GenerationReport
from ffwd.grammar import Writing, WritingOptions

Stop = Callable[[], bool]
_PARTICLES = 16


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
    reasoning_tokens: int | None = None
    draft_tokens: int | None = None
    canonical: bool = False
    fast_forward: bool | FastForward = True
    tools: Sequence[Any] | None = None
    template_variables: Mapping[str, Any] | None = None
    report: GenerationReport | None = None
    masses: bool = False
    sampling: Sampling = "masks"
    particles: int | None = None
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
        made = cls(**own, writing=cast(WritingOptions, writing), generate_options=others)
        made._check_sampling()
        for name in ("reasoning_tokens", "draft_tokens"):
            most = getattr(made, name)
            if isinstance(most, bool) or not isinstance(most, int | None):
                raise TypeError(f"{name} is {most!r}: give a number of tokens")
            if most is not None and most < 1:
                raise ValueError(f"{name} is {most}: give at least 1, or leave it out")
        return made

    @property
    def of_draft(self) -> "ChatOptions":
        """The options of a draft: free text, under masks that allow all of it."""
        given = {name: one for name, one in self.generate_options.items() if name != "streamer"}
        return ChatOptions(
            max_new_tokens=self.draft_tokens,
            complete=False,
            fast_forward=self.fast_forward,
            tools=self.tools,
            template_variables=self.template_variables,
            should_stop=self.should_stop,
            generate_options=given,
        )

    @property
    def number(self) -> int:
        """The number of texts that are written for an answer."""
        if self.sampling == "masks":
            return 1
        return _PARTICLES if self.particles is None else self.particles

    def _check_sampling(self) -> None:
        if self.sampling not in get_args(Sampling):
            known = ", ".join(map(repr, get_args(Sampling)))
            raise ValueError(f"sampling is {self.sampling!r}: give one of {known}")
        if self.sampling == "masks":
            if self.particles is not None:
                raise TypeError("particles is for sampling='weighted', 'smc' and 'adaptive'")
            return
        if isinstance(self.particles, bool) or not isinstance(self.particles, int | None):
            raise TypeError(f"particles is {self.particles!r}: give a number of texts")
        if self.number < 1:
            raise ValueError(f"particles is {self.particles}: give at least 1")
        how = f"sampling={self.sampling!r}"
        if self.fast_forward is False:
            raise TypeError(f"fast_forward=False: {how} has a decoding loop of its own")
        if not self.complete:
            raise TypeError(f"complete=False: {how} weighs whole texts")
        if self.report is not None and (self.report.trace or self.report.record):
            raise TypeError(f"report: {how} has no trace and no recordings; ask for `stats` alone")
        given = self.generate_options
        config = given.get("generation_config")
        for name, neutral in NEUTRAL.items():
            value = given.get(name, getattr(config, name, None))
            if value not in (None, neutral):
                raise TypeError(
                    f"{name}={value}: {how} draws from the model's whole distribution, which this "
                    f"would change; leave it out, or give {name}={neutral}"
                )
        for name, value in (("do_sample", True), ("num_beams", 1), ("streamer", None)):
            if given.get(name, value) != value:
                raise TypeError(f"{name}={given[name]!r}: {how} samples several texts at a time")


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
