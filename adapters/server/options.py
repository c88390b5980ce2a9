"""The options of a server."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from ffwd import Limits
from ffwd.adapters.server.keys import ApiKey
from ffwd.adapters.server.tool_marks import Strictness
from ffwd.grammar import Writing

DEFAULT_LIMITS = Limits()
DEFAULT_WRITING = Writing()
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Limits and switches; the defaults suit one small machine.

    Attributes:
        max_batch: How many answers are written at the same time.
        max_queue: How many requests may wait for that; one more is answered with 429.
        max_n: The largest `n` of a request.
        max_texts: How many texts a request for completions may ask for: `n` for each prompt.
        max_body_bytes: The longest body of a request.
        max_prompt_values: How many values (messages, parts, fields, items of tools) a prompt may be
            rendered from; one more is answered with 413.
        max_tools: How many tools a request may have.
        max_stops: How many stop strings a request may have.
        default_max_tokens: How many tokens an answer may have where the request does not say, if so
            many fit.
        deadline: Seconds after which a request is given up.
        read_timeout: Seconds in which a client must have sent the head of its request, and again
            its body.
        write_timeout: Seconds in which a client must take what is sent to it.
        prefill_tokens: How many tokens of prompts one forward pass may have, so that a long prompt
            does not keep the answers of others waiting.
        late: Seconds that a forward pass waits for forced tokens, and again for masks. Texts that
            take longer join a later pass.
        compile_threads: How many grammars that need least are compiled at the same time. Those that
            need more follow each other in one of two threads of lower priority, and requests
            without a grammar that has to be compiled wait for none of them.
        mask_threads: How many threads find masks.
        grammar_cache_bytes: How much memory the compiled grammars that are kept may have.
        limits: What one grammar may use.
        writing: How the JSON of answers is written.
        tool_strictness: Which arguments of calls follow their schema if the model decides whether
            it calls: "auto": those without `strict: false`; "always": all; "strict": those with
            `strict: true`; "off": none.
        warm: A file of grammars that are compiled at the start, in JSON Lines; each line has the
            fields of a chat request that constrain its answer.
        shutdown_grace: Seconds that answers in progress have when the server is told to stop.
        api_key: What clients must give as a bearer token; None for anybody.
        api_keys: Keys with limits, from `read_api_keys`; `api_key` may be given beside them.
        cors_origins: The origins whose pages browsers let use the server, such as
            `https://chat.example`; `*` for all.
        protect_metrics: Whether `/metrics` needs the key as well.

    Raises:
        ValueError: An origin is none, so no browser would ever send it; `api_key` is in `api_keys`;
            or there is no such strictness.

    """

    max_batch: int = 64
    max_queue: int = 256
    max_n: int = 8
    max_texts: int = 64
    max_body_bytes: int = 4 << 20
    max_prompt_values: int = 1 << 16
    max_tools: int = 128
    max_stops: int = 16
    default_max_tokens: int = 4096
    deadline: float = 600.0
    read_timeout: float = 30.0
    write_timeout: float = 60.0
    prefill_tokens: int = 512
    late: float = 0.02
    compile_threads: int = 2
    mask_threads: int = 4
    grammar_cache_bytes: int = 1 << 30
    limits: Limits = DEFAULT_LIMITS
    writing: Writing = DEFAULT_WRITING
    tool_strictness: Strictness = "auto"
    warm: Path | None = None
    shutdown_grace: float = 30.0
    api_key: str | None = field(default=None, repr=False)
    api_keys: tuple[ApiKey, ...] = ()
    cors_origins: tuple[str, ...] = ()
    protect_metrics: bool = False

    def __post_init__(self) -> None:
        """Check origins, keys and strictness."""
        if self.tool_strictness not in get_args(Strictness):
            raise ValueError(
                f"`tool_strictness` is {self.tool_strictness!r}: give one of "
                f"{', '.join(get_args(Strictness))}"
            )
        if self.api_key is not None and self.api_key in {key.key for key in self.api_keys}:
            raise ValueError("`api_key`, which has no limits, is one of the keys in `api_keys`")
        for origin in self.cors_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{origin!r} is not an origin: give a scheme and a host in lower case, with its"
                    " port and without a path, such as http://localhost:3000, or * for all"
                )
