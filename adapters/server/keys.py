"""API keys: who may use the server, and how much.

Limits are those of any 60 seconds. The tokens of a request are reserved when its texts are known,
and what they do not use is given back when it ends. Only the event loop's thread uses this module.
"""

import hashlib
import hmac
import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ffwd import FfwdError
from ffwd.adapters.server.errors import ApiError, bad, limited

_SECONDS = 60.0
_Limit = Annotated[int, Field(ge=1)]


class ApiKey(BaseModel):
    """A key and its limits, None for no limit.

    Attributes:
        key: What clients give.
        name: What error messages call it.
        max_concurrent: The number of its requests at the same time.
        requests_per_minute: The number of its requests in any 60 seconds.
        tokens_per_minute: The number of tokens of its prompts and answers in any 60 seconds.

    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    # A header has no spaces and no other characters.
    key: Annotated[str, Field(pattern=r"^[!-~]+$", repr=False)]
    name: str | None = None
    max_concurrent: _Limit | None = None
    requests_per_minute: _Limit | None = None
    tokens_per_minute: _Limit | None = None


class ApiKeysError(FfwdError):
    """A file of keys, or a line of it, is unusable.

    Attributes:
        path: The file.
        line: The number of the line, from 1; None if the whole file is.

    """

    def __init__(self, path: Path, line: int | None, reason: str) -> None:
        place = "" if line is None else f", line {line}"
        super().__init__(f"the keys in {path}{place} cannot be used: {reason}")
        self.path = path
        self.line = line


def read_api_keys(path: str | Path) -> tuple[ApiKey, ...]:
    """Return the keys in a file of JSON Lines; empty lines are skipped.

    Raises:
        ApiKeysError: The file cannot be read, has no keys or one twice, or a line is none. The
            message has no key.

    """
    path = Path(path)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ApiKeysError(path, None, str(error)) from error
    keys: dict[str, int] = {}
    found: list[ApiKey] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            made = ApiKey.model_validate(json.loads(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "the line"
            raise ApiKeysError(path, number, f"`{field}`: {first['msg']}") from None
        except (ValueError, RecursionError) as error:
            raise ApiKeysError(path, number, f"it is not JSON: {error}") from None
        if made.key in keys:
            raise ApiKeysError(path, number, f"it has the key of line {keys[made.key]}")
        keys[made.key] = number
        found.append(made)
    if not found:
        raise ApiKeysError(path, None, 'there are none; write a line such as {"key": "…"}')
    return tuple(found)


@dataclass(eq=False)
class _Taken:
    """A part of a window's amount."""

    time: float
    amount: int
    past: bool = False


class Window:
    """An amount that may be taken in any 60 seconds.

    Args:
        limit: The amount.

    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken: deque[_Taken] = deque()
        self._sum = 0

    def wait(self, amount: int, now: float) -> float:
        """Return the seconds until an amount may be taken; 0 for now."""
        while self._taken and self._taken[0].time + _SECONDS <= now:
            first = self._taken.popleft()
            first.past = True
            self._sum -= first.amount
        excess = self._sum + amount - self.limit
        if excess <= 0:
            return 0.0
        for taken in self._taken:
            excess -= taken.amount
            if excess <= 0:
                return taken.time + _SECONDS - now
        return math.inf

    def take(self, amount: int, now: float) -> _Taken:
        """Take an amount."""
        taken = _Taken(now, amount)
        self._taken.append(taken)
        self._sum += amount
        return taken

    def give_back(self, taken: _Taken, amount: int) -> None:
        """Return a part of an amount that was taken."""
        if not taken.past:
            taken.amount -= amount
            self._sum -= amount


class Account:
    """The requests and tokens that a key has used.

    Args:
        key: The key; None for one without limits.
        clock: Seconds, as `time.monotonic` has them.

    """

    def __init__(self, key: ApiKey | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._name = "this key" if key is None or key.name is None else f"the key {key.name!r}"
        self._most = None if key is None else key.max_concurrent
        requests = None if key is None else key.requests_per_minute
        tokens = None if key is None else key.tokens_per_minute
        self._requests = None if requests is None else Window(requests)
        self._tokens = None if tokens is None else Window(tokens)
        self._open = 0

    def begin(self) -> None:
        """Count a request that begins.

        Raises:
            ApiError: It is one too many; it does not count then.

        """
        if self._most is not None and self._open >= self._most:
            raise limited(
                f"{self._name} has {self._open} requests in progress, which is its limit",
                kind="requests",
                code="concurrency_limit_exceeded",
                seconds=1,
            )
        if self._requests is not None:
            now = self._clock()
            if seconds := self._requests.wait(1, now):
                raise limited(
                    f"{self._name} has used its {self._requests.limit} requests a minute",
                    kind="requests",
                    code="rate_limit_exceeded",
                    seconds=seconds,
                )
            self._requests.take(1, now)
        self._open += 1

    def end(self) -> None:
        """Count a request that ends."""
        self._open -= 1

    def reserve(self, tokens: int) -> Callable[[int], None]:
        """Reserve tokens; the result is called with the number of those that were used.

        Raises:
            ApiError: They are too many for now, or for any minute.

        """
        window = self._tokens
        if window is None:
            return lambda used: None
        if tokens > window.limit:
            raise bad(
                f"prompt and answer may have {tokens} tokens, and {self._name} has "
                f"{window.limit} a minute: lower `max_tokens`, or send a shorter prompt",
                param="max_tokens",
                code="tokens_per_minute_too_small",
            )
        now = self._clock()
        if seconds := window.wait(tokens, now):
            raise limited(
                f"{self._name} has {window.limit} tokens a minute, of which fewer than the "
                f"{tokens} of this request are left; its `max_tokens` counts",
                kind="tokens",
                code="rate_limit_exceeded",
                seconds=seconds,
            )
        taken = window.take(tokens, now)
        return lambda used: window.give_back(taken, tokens - used)


class Use:
    """One request of an account; it begins and ends as a context.

    Args:
        account: The account.

    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._ends: list[Callable[[], None]] = []

    def __enter__(self) -> "Use":
        self._account.begin()
        self._ends.append(self._account.end)
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def reserve(self, tokens: int, used: Callable[[], int]) -> None:
        """Reserve tokens, as an account does; at the end `used` says how many were used."""
        settle = self._account.reserve(tokens)
        self._ends.append(lambda: settle(used()))

    def close(self) -> None:
        """End the request, before its client can send the next one; a second call does nothing."""
        ends, self._ends = self._ends, []
        for end in ends:
            end()


class Keys:
    """The keys of a server.

    Args:
        single: A key without limits.
        keys: Keys with limits. Without any key, everybody may use the server.
        clock: Seconds, as `time.monotonic` has them.

    """

    def __init__(
        self,
        single: str | None,
        keys: Sequence[ApiKey] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._accounts = [(_digest(key.key), Account(key, clock)) for key in keys]
        if single is not None:
            self._accounts.append((_digest(single), Account(None, clock)))
        self._anybody = None if self._accounts else Account(None, clock)

    def account(self, authorization: bytes) -> Account:
        """Return the account of a header; how long that takes does not tell how much is right.

        Raises:
            ApiError: There is no such key.

        """
        if self._anybody is not None:
            return self._anybody
        given = hashlib.sha256(authorization).digest()
        found: Account | None = None
        for digest, account in self._accounts:
            if hmac.compare_digest(given, digest):
                found = account
        if found is None:
            raise ApiError(
                401,
                "the API key is missing or wrong",
                kind="authentication_error",
                code="invalid_api_key",
            )
        return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(b"Bearer " + key.encode()).digest()
