"""The HTML document of a recording: data as JSON, and a script that draws it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable
from importlib import resources
from typing import Any

from ffwd.view.recording import Allowed, Candidate, Recording, Step

# Nothing is fetched, and no script runs but the page's own: its hash is the only one allowed.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '{style_hash}'; \
script-src '{script_hash}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="view"><noscript><p>The picture needs JavaScript. The text is:</p>
<pre>{text}</pre></noscript></main>
<script type="application/json" id="recording">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page(recording: Recording) -> str:
    """Return the document, with tokens and titles escaped."""
    files = resources.files("ffwd.view")
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    script = files.joinpath("page.js").read_text(encoding="utf-8")
    title = f"{recording.title}: a generation" if recording.title else "A generation"
    return _PAGE.format(
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        title=html.escape(title),
        style=style,
        text=html.escape(recording.text.decode(errors="replace")),
        data=script_json(_data(recording)),
        script=script,
    )


def script_json(data: Any) -> str:
    """Return JSON that can neither close a script element nor begin a comment in it."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    # Outside of strings JSON has none of these characters.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def hash_of(text: str) -> str:
    """Return the source of a script or style in a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _data(recording: Recording) -> dict[str, Any]:
    masks: list[Allowed] = []
    places: dict[int, int] = {}
    for step in recording.steps:
        # The recorder gives equal masks as one object.
        if step.allowed is not None and id(step.allowed) not in places:
            places[id(step.allowed)] = len(masks)
            masks.append(step.allowed)

    def token(token_id: int) -> list[Any]:
        name = recording.names.get(token_id)
        return [token_id, *piece_of(recording.pieces.get(token_id), name or f"token {token_id}")]

    def candidate(found: Candidate) -> list[Any]:
        return [*token(found.token), found.probability]

    def of(step: Step) -> dict[str, Any]:
        return {
            "t": step.token,
            "s": piece_of(step.text, step.name or f"token {step.token}"),
            "k": step.kind,
            "a": step.asked,
            "m": None if step.allowed is None else places[id(step.allowed)],
            "c": [candidate(one) for one in step.candidates],
            "q": step.allowed_probability,
            "f": None if step.preferred is None else candidate(step.preferred),
            "n": [step.time.model, step.time.mask, step.time.accept],
        }

    hidden = recording.prompt_tokens - len(recording.prompt)
    return {
        "title": recording.title,
        "size": recording.vocab_size,
        "replayed": recording.replayed,
        "weight": _weight(recording),
        "hidden": hidden,
        "prompt": [token(i)[1:] for i, _ in recording.prompt],
        "back": [token(i)[1:] for i in recording.taken_back],
        "steps": [of(step) for step in recording.steps],
        "masks": [
            {
                "n": mask.count,
                "t": [token(i) for i in mask.tokens],
                "b": ranges_of(mask.first_bytes),
            }
            for mask in masks
        ],
        "refused": recording.refused.decode(errors="backslashreplace"),
        "refusal": recording.refusal,
    }


def _weight(recording: Recording) -> float | None:
    """Return the log weight; None where it is unknown, or minus infinity, which JSON lacks."""
    weight = recording.log_weight if recording.steps else None
    return weight if weight is not None and math.isfinite(weight) else None


def piece_of(data: bytes | None, name: str) -> list[Any]:
    """Return a token's text, and its kind: "text", "bytes" or "control"."""
    if data is None:
        return [name, "control"]
    try:
        return [data.decode(), "text"]
    except UnicodeDecodeError:
        return ["".join(chr(b) if 0x20 < b < 0x7F else f"\\x{b:02x}" for b in data), "bytes"]


def ranges_of(sorted_bytes: Iterable[int]) -> str:
    """Return bytes as ranges of characters."""
    runs: list[list[int]] = []
    for byte in sorted_bytes:
        if runs and byte == runs[-1][1] + 1 and _sort(byte) == _sort(runs[-1][1]):
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return " ".join(
        _byte(first)
        if first == last
        else _byte(first) + ("" if last == first + 1 else "–") + _byte(last)  # noqa: RUF001
        for first, last in runs
    )


def _sort(byte: int) -> int:
    """Return the kind of a character, so that runs do not mix digits, punctuation and letters."""
    character = chr(byte)
    if byte >= 0x80:
        return 4
    return (
        1 if character.isdigit() else 2 if character.isupper() else 3 if character.islower() else 0
    )


def _byte(byte: int) -> str:
    named = {0x20: "␣", 0x09: "⇥", 0x0A: "⏎", 0x0D: "\\r"}
    return named.get(byte) or (chr(byte) if 0x20 < byte < 0x7F else f"\\x{byte:02x}")
