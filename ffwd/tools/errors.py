"""Errors of tools, of the choice among them, and of a model's format."""

from ffwd._native import FfwdError


class ToolsError(FfwdError):
    """Tools cannot be made a grammar."""


class RefusedTool(ToolsError):  # noqa: N818 - also a report, not only raised
    """One tool that cannot be used; the others can.

    Attributes:
        name: Its name; empty where it has none.
        index: Its place in the list, from 0.
        pointer: JSON pointer within its parameters, if a place in them is meant.
        keyword: The keyword there that is not supported, if that is the reason.
        reason: Why, without the tool's name.

    """

    def __init__(
        self, reason: str, *, name: str, index: int, pointer: str = "", keyword: str = ""
    ) -> None:
        super().__init__(f"tool {name!r} (number {index}): {reason}")
        self.name = name
        self.index = index
        self.pointer = pointer
        self.keyword = keyword
        self.reason = reason


class RefusedToolsError(ToolsError):
    """Some tools cannot be used.

    Attributes:
        refused: All of them, with the reasons.

    """

    def __init__(self, refused: tuple[RefusedTool, ...]) -> None:
        super().__init__("; ".join(str(tool) for tool in refused))
        self.refused = refused


class ToolChoiceError(ToolsError):
    """A malformed `tool_choice`, or one that names an unknown tool."""


class ToolFormatError(ToolsError):
    """There is no such format of calls, or none can be told from what is given."""
