"""Errors as OpenAI's interface has them."""

import math
from typing import Any

from ffwd import BudgetError, DeadlineExceededError, FfwdError, LimitExceededError
from ffwd.chat import ChatError, ConversationError
from ffwd.tools import RefusedToolsError, ToolChoiceError, ToolFormatError

_MAX_SHOWN = 160


class ApiError(Exception):
    """An answer that is an error.

    Attributes:
        status: Of HTTP.
        message: What is wrong, where, and what would work.
        kind: OpenAI's `type`.
        param: The field of the request that it is about.
        code: A word for programs.
        headers: Of the answer, beside the usual ones.

    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
        self.code = code
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }


def bad(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """Return the error for an invalid request."""
    return ApiError(400, message, param=param, code=code)


def unsupported(param: str, reason: str) -> ApiError:
    """Return the error for an unsupported field."""
    return bad(f"`{param}` is not supported: {reason}", param=param, code="unsupported_parameter")


def renamed(error: ApiError, param: str) -> ApiError:
    """Return an error that calls its field otherwise, in its message too."""
    message = error.message
    if error.param is not None:
        message = message.replace(f"`{error.param}", f"`{param}")
    return ApiError(
        error.status,
        message,
        kind=error.kind,
        param=param,
        code=error.code,
        headers=error.headers,
    )


def overloaded(message: str) -> ApiError:
    """Return the error for a request without a free place."""
    return ApiError(
        429,
        message,
        kind="server_overloaded",
        code="queue_full",
        headers={"Retry-After": "1"},
    )


def limited(message: str, *, kind: str, code: str, seconds: float) -> ApiError:
    """Return the error for a key that has used what it may; it may continue after `seconds`."""
    return ApiError(
        429,
        message,
        kind=kind,
        code=code,
        headers={"Retry-After": str(max(math.ceil(seconds), 1))},
    )


def overdue(message: str, param: str | None) -> ApiError:
    """Return the error for a slow grammar, which a less busy server may compile."""
    return ApiError(
        503,
        message,
        kind="server_overloaded",
        param=param,
        code="grammar_deadline",
        headers={"Retry-After": "1"},
    )


def stopping() -> ApiError:
    """Return the error of a server that is stopping."""
    return ApiError(
        503,
        "the server is shutting down",
        kind="server_error",
        code="shutting_down",
        headers={"Retry-After": "10"},
    )


def late(seconds: float) -> ApiError:
    """Return the error for a request that takes too long."""
    return ApiError(
        504,
        f"the request was given up after {seconds:g} seconds",
        kind="timeout_error",
        code="deadline_exceeded",
        # It would take as long the next time.
        headers={"x-should-retry": "false"},
    )


def internal(error: BaseException) -> ApiError:
    """Return the error for a fault of the server."""
    return ApiError(
        500,
        f"the server failed: {type(error).__name__}: {error}",
        kind="server_error",
        code="internal_error",
    )


def of_ffwd(error: Exception, param: str | None, *, budget_param: str = "max_tokens") -> ApiError:
    """Return the error for one of ffwd's; `param` is the offending field."""
    code = "invalid_grammar"
    if isinstance(error, BudgetError):
        return bad(
            f"no answer that follows the request's grammar ends within {error.max_tokens} tokens: "
            f"{error.needed} suffice. Raise `{budget_param}`, or give `complete: false` to have the"
            " answer cut off",
            param=budget_param,
            code="max_tokens_too_small",
        )
    if isinstance(error, RefusedToolsError):
        first = error.refused[0]
        param, code = f"tools[{first.index}].function.parameters", "invalid_tool"
    elif isinstance(error, ToolChoiceError):
        param, code = "tool_choice", "invalid_tool_choice"
    elif isinstance(error, ToolFormatError):
        param, code = "tools", "tools_unsupported"
    elif isinstance(error, ConversationError):
        param = "messages" if error.index is None else f"messages[{error.index}]"
        code = "invalid_messages"
    elif isinstance(error, ChatError):
        param, code = "messages", "invalid_messages"
    elif isinstance(error, DeadlineExceededError):
        return overdue(str(error), param)
    elif isinstance(error, LimitExceededError):
        code = "grammar_too_large"
    pointer = getattr(error, "pointer", "")
    message = str(error) or type(error).__name__
    if pointer and "(at " not in message:
        message += f" (at {_shortened(pointer)})"
    return bad(f"{type(error).__name__}: {message}", param=param, code=code)


def _shortened(pointer: str) -> str:
    """Return a pointer for a message, without its middle if it is long."""
    half = _MAX_SHOWN // 2
    return pointer if len(pointer) <= _MAX_SHOWN else f"{pointer[:half]}…{pointer[-half:]}"


BAD_INPUT = (FfwdError, ValueError, TypeError, RecursionError, OverflowError)
"""What reading a stranger's request may raise."""
