"""Text and reasoning of an answer, from its tokens."""

from collections.abc import Sequence

from ffwd import Event
from ffwd.chat import Start

ANSWER = "ffwd.answer"
"""The capture of the answer in a grammar that has reasoning before it."""
_UNFINISHED = "\ufffd"


class Reading:
    """An answer as far as it has come.

    Args:
        start: Where it begins.
        wrapped: Whether the grammar is one of reasoning, and of the answer as a capture.

    """

    def __init__(self, start: Start, *, wrapped: bool) -> None:
        self._start = start
        self._wrapped = wrapped
        self._given = ("", "")
        self.matcher = start.matcher()
        self.tokens: list[int] = []
        self.text = start.prefill.decode(errors="replace")
        self.reasoning = ""

    @property
    def complete(self) -> bool:
        """Whether the text is one that the grammar allows."""
        return self.matcher.is_terminated() or self.matcher.is_accepting()

    def add(self, tokens: Sequence[int], *, finish: bool = False) -> tuple[str, str, list[Event]]:
        """Read on: what is new of the text, of the reasoning, and what has become certain.

        Tokens after the end are padding and left out.
        """
        new = tokens[: self.matcher.validate_tokens(tokens)]
        self.matcher.accept_tokens(new)
        self.tokens += new
        events = self.matcher.events(finish=finish)
        if self._wrapped:
            self._follow(events)
        else:
            answer = self._start.answer(self.tokens)
            self.text, self.reasoning = answer.text, answer.reasoning
        return (*self._news(finish=finish), events)

    def _follow(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.action == "delta" and event.text is not None:
                if event.kind == "capture" and event.name == ANSWER:
                    self.text += event.text
                elif event.kind == "reasoning":
                    self.reasoning += event.text

    def _news(self, *, finish: bool) -> tuple[str, str]:
        """Return the unreported parts of both, without an incomplete character."""
        now = (self.text, self.reasoning)
        if not finish:
            now = (now[0].rstrip(_UNFINISHED), now[1].rstrip(_UNFINISHED))
        news = tuple(one[len(given) :] for one, given in zip(now, self._given, strict=True))
        self._given = now
        return news[0], news[1]
