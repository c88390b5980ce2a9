"""Free text in which triggers start grammars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._free_text import check_texts, texts_of
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._sequence import shown


@dataclass(frozen=True, eq=False, repr=False)
class Dispatch(Grammar):
    """Free text in which a trigger is followed by its grammar, made by `dispatch`.

    Attributes:
        cases: Pairs of a trigger and its grammar.
        excluding: Texts that the free text does not contain.
        loop: Whether free text continues after such a grammar.
        controls: Whether names of control tokens in triggers mean these tokens.

    """

    cases: tuple[tuple[str, Grammar], ...]
    excluding: tuple[str, ...] = ()
    loop: bool = True
    controls: bool = False

    _function = "dispatch"

    def __post_init__(self) -> None:
        triggers = tuple(trigger for trigger, _ in self.cases)
        check_texts(triggers, "a trigger")
        check_texts(self.excluding, "excluding")
        if not triggers:
            raise grammar_error("dispatch needs at least one trigger")
        for trigger, content in self.cases:
            if not isinstance(content, Grammar):
                raise TypeError(
                    f"what follows {trigger!r} must be a grammar, not {type(content).__name__}"
                )
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return tuple(content for _, content in self.cases)

    def _label(self) -> tuple[object, ...]:
        triggers = tuple(trigger for trigger, _ in self.cases)
        return (triggers, self.excluding, self.loop, self.controls)

    def _arguments(self) -> Iterable[tuple[str, object]]:
        yield "", [(trigger, shown(content)) for trigger, content in self.cases]
        if self.excluding:
            yield "excluding", list(self.excluding)
        if not self.loop:
            yield "loop", False
        if self.controls:
            yield "controls", True


def dispatch(
    cases: Mapping[str, GrammarLike] | Sequence[tuple[str, GrammarLike]],
    *,
    excluding: str | Sequence[str] = (),
    loop: bool = True,
    controls: bool = False,
) -> Dispatch:
    """Return a grammar for free text in which each trigger is followed by its grammar.

    The trigger that ends first counts, and of those that end together the longest. A trigger within
    a longer one does not keep the longer one from continuing.

    Args:
        cases: The grammar after each trigger. A repeated trigger is followed by either grammar.
        excluding: The texts that the free text does not contain: one or several.
        loop: Whether free text, and other triggers, continue after such a grammar. Without it, the
            text ends there.
        controls: Whether the name of a control token of the vocabulary in a trigger, such as
            `<tool_call>`, means that token. The free text then excludes the name as text too.

    Raises:
        GrammarError: No trigger; or one is empty or has a lone surrogate.
        TypeError: An argument of another type.

    """
    pairs = list(cases.items()) if isinstance(cases, Mapping) else list(cases)
    for name, flag in (("loop", loop), ("controls", controls)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")
    return Dispatch(
        tuple((trigger, as_grammar(item, f"what follows {trigger!r}")) for trigger, item in pairs),
        texts_of(excluding, "excluding"),
        loop,
        controls,
    )
