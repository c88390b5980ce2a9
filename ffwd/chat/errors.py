"""Errors of conversations and templates."""

from ffwd._native import FfwdError


class ChatError(FfwdError):
    """A conversation cannot be turned into a prompt."""


class TemplateError(ChatError):
    """The template refuses, is wrong, or exceeds a limit.

    `line` is the line of the template, from 1, if known; `variable` is the undefined name.
    """

    def __init__(
        self, message: str, *, line: int | None = None, variable: str | None = None
    ) -> None:
        super().__init__(message)
        self.line = line
        self.variable = variable


class TemplateSyntaxError(TemplateError):
    """The template is malformed, at `line`."""


class TemplateRefusedError(TemplateError):
    """The template's own `raise_exception`; the message is the template's."""


class UndefinedVariableError(TemplateError):
    """The template uses an undefined variable; `variable` is its name."""


class TemplateSecurityError(TemplateError):
    """The template uses something that the sandbox forbids."""


class TemplateLimitError(TemplateError):
    """The template writes too much, or loops too often."""


class MissingTemplateError(ChatError):
    """The tokenizer has no template, or none of that name."""


class MissingControlTokensError(ChatError):
    """The vocabulary lacks control tokens that the template writes; `tokens` are their names."""

    def __init__(self, message: str, *, tokens: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tokens = tokens


class InjectionError(ChatError):
    """A control token is of unknown origin: the template or a message's text."""


class ToolError(ChatError):
    """A Python function cannot be described as a tool; `function` is its name."""

    def __init__(self, message: str, *, function: str | None = None) -> None:
        super().__init__(message)
        self.function = function


class ConversationError(ChatError):
    """A message is invalid. `index` counts from 0; None is the conversation as a whole."""

    def __init__(self, message: str, *, index: int | None = None, role: str | None = None) -> None:
        super().__init__(message)
        self.index = index
        self.role = role


class PromptLengthError(ChatError):
    """A conversation does not fit. It needs `num_tokens`, and `limit` are allowed."""

    def __init__(self, message: str, *, num_tokens: int | None = None, limit: int) -> None:
        super().__init__(message)
        self.num_tokens = num_tokens
        self.limit = limit


class FormatError(ChatError):
    """A format has an invalid field, such as an empty stop string."""
