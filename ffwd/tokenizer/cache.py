"""Compiled tokenizers on disk, so that a process loads one in a quarter of the time.

An entry is a file that is named for everything it depends on: the contents of the tokenizer's
files, the options of `load`, and the version of ffwd. So it never becomes wrong, and processes and
machines may share a directory: a file is written under another name and renamed.

| bytes | |
| --- | --- |
| 4 | `ffwd` |
| 1 | `Z` |
| 2 | the version of the format |
| 32 | the key |
| 8 | the length of the rest, without the last 32 bytes |
| | the settings as JSON, then names (with NUL between), kinds and the model |
| 32 | SHA-256 of everything before |

No entry is trusted: a file that does not fit is ignored, and written again. The native model is
checked where it is loaded, and no part of an entry is code.
"""

import base64
import hashlib
import json
import logging
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from ffwd._native import BpeModel, VocabularyError, __version__
from ffwd.tokenizer.audit import KINDS as FINDINGS
from ffwd.tokenizer.audit import Finding
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import KINDS, TokenizerParts
from ffwd.tokenizer.parts import BpeParts
from ffwd.tokenizer.roles import ROLES, SpecialToken, SpecialTokens
from ffwd.tokenizer.table import MAX_WIDTH, TokenKind

_LOGGER = logging.getLogger(__name__)

VARIABLE = "FFWD_CACHE_DIR"
"""The environment variable that names the directory."""

_START = b"ffwdZ" + struct.pack("<H", 3)
_HEADER = len(_START) + 32 + 8
_MAX_BYTES = 256 << 20
_BETWEEN_NAMES = "\0"
_TOKEN_KINDS = list(TokenKind)
_NUMBERS = {kind: number for number, kind in enumerate(_TOKEN_KINDS)}
_NOT_TEXT = re.compile(b"[^" + re.escape(bytes([_NUMBERS[TokenKind.TEXT]])) + b"]")
"""Almost all tokens are text, and a search finds the others sooner than a loop."""

BESIDE = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "generation_config.json",
    "config.json",
    "chat_template.jinja",
    "chat_template.json",
)
"""The files beside a tokenizer that have a part in it."""


def cache_directory(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory of `load`'s `cache`, by default that of FFWD_CACHE_DIR, if any."""
    named = os.environ.get(VARIABLE) if given is None else os.fspath(given)
    return Path(os.path.expanduser(named)) if named else None


def key_of(file: Path, options: Mapping[str, Any]) -> bytes | None:
    """Return the key of a tokenizer: what its files contain, and the options with which it is read.

    None for a file that cannot be read or is too large to be a tokenizer's.
    """
    files = [file]
    if options["folder"]:
        beside = [file.parent / name for name in BESIDE]
        beside += sorted((file.parent / "additional_chat_templates").glob("*.jinja"))
        files += [path for path in beside if path.is_file()]
    digest = hashlib.sha256(f"{__version__}\n{json.dumps(options, sort_keys=True)}\n".encode())
    try:
        for path in files:
            if path.stat().st_size > _MAX_BYTES:
                return None
            content = path.read_bytes()
            name = path.name.encode(errors="surrogateescape")
            digest.update(struct.pack("<QQ", len(name), len(content)) + name)
            digest.update(content)
    except OSError:
        return None  # Reading it without a cache tells what is wrong.
    return digest.digest()


Entry = tuple[TokenizerParts, list[Finding]]
"""A tokenizer and its findings."""


def read_entry(folder: Path, key: bytes, source: str) -> Entry | None:
    """Return a tokenizer from the cache; None without an entry, or for one that does not fit."""
    path = _path(folder, key)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    try:
        return _parse(_unsealed(data, key), source)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        reason = error
    except VocabularyError as error:
        reason = error
    _LOGGER.warning("%s is ignored and written again: %s", path, reason)
    return None


def write_entry(
    folder: Path, key: bytes, parts: TokenizerParts, findings: Sequence[Finding]
) -> None:
    """Write a tokenizer, if it is one that can be kept; a failure is logged."""
    payload = _payload(parts, findings)
    if payload is None:
        return
    sealed = _START + key + struct.pack("<Q", len(payload)) + payload
    sealed += hashlib.sha256(sealed).digest()
    import tempfile  # Reading an entry does not need it.

    path = _path(folder, key)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tokenizer-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(sealed)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        _LOGGER.warning("%s cannot be written, so the tokenizer is not kept: %s", path, error)


def _path(folder: Path, key: bytes) -> Path:
    return folder / f"tokenizer-{key.hex()}.ffwd"


def _unsealed(data: bytes, key: bytes) -> memoryview:
    if len(data) < _HEADER + 32 or not data.startswith(_START + key):
        raise ValueError("it has another format, or another key")
    (length,) = struct.unpack_from("<Q", data, _HEADER - 8)
    if length != len(data) - _HEADER - 32:
        raise ValueError("it ends too early, or goes on too long")
    view = memoryview(data)
    if hashlib.sha256(view[:-32]).digest() != data[-32:]:
        raise ValueError("its checksum differs")
    return view[_HEADER:-32]


def _payload(parts: TokenizerParts, findings: Sequence[Finding]) -> bytes | None:
    given = parts.bpe_parts
    model = None if given is None else given["model"].save()
    if given is None or model is None:
        return None
    size = len(parts.names)
    texts = given["model"].texts(size)
    other = {
        i: None if data is None else base64.b64encode(data).decode()
        for i, (data, text) in enumerate(zip(parts.tokens, texts, strict=True))
        if data != text
    }
    apart = [(i, name) for i, name in enumerate(parts.names) if not _is_plain(name)]
    names = list(parts.names)
    for i, _ in apart:
        names[i] = ""
    settings = {
        "kind": parts.kind,
        "size": size,
        "tokens": list(other.items()),
        "names": apart,
        "special_ids": list(parts.special_ids),
        "special_tokens": asdict(parts.special_tokens),
        "eos_token_ids": list(parts.eos_token_ids),
        "prefix_ids": list(parts.prefix_ids),
        "suffix_ids": list(parts.suffix_ids),
        "chat_templates": dict(parts.chat_templates),
        "strip_first_space": parts.strip_first_space,
        "strip_every_first_space": parts.strip_every_first_space,
        "first_tokens": [
            (i, base64.b64encode(data).decode()) for i, data in parts.first_tokens.items()
        ],
        "width": parts.width,
        "limits": list(parts.limits),
        "bpe": {name: value for name, value in given.items() if name != "model"},
        "findings": [(f.kind, f.message, f.token_ids) for f in findings],
    }
    sections = [
        json.dumps(settings).encode(),
        _BETWEEN_NAMES.join(cast(list[str], names)).encode(errors="surrogatepass"),
        bytes(map(_NUMBERS.__getitem__, parts.kinds)),
        model,
    ]
    lengths = struct.pack("<4Q", *map(len, sections))
    return b"".join([lengths, *sections])


def _parse(payload: memoryview, source: str) -> Entry:
    lengths = struct.unpack_from("<4Q", payload)
    if sum(lengths) != len(payload) - 32:
        raise ValueError("its sections do not fit")
    sections = []
    start = 32
    for length in lengths:
        sections.append(payload[start : start + length])
        start += length
    settings = json.loads(bytes(sections[0]))
    size = _integer(settings["size"], MAX_WIDTH + 1)
    model = BpeModel.load(bytes(sections[3]))

    names: list[str | None] = []
    names += str(sections[1], "utf-8", "surrogatepass").split(_BETWEEN_NAMES)
    kinds = [TokenKind.TEXT] * len(sections[2])
    for other in _NOT_TEXT.finditer(sections[2]):
        kinds[other.start()] = _TOKEN_KINDS[sections[2][other.start()]]
    tokens = model.texts(size)
    for token_id, text in settings["tokens"]:
        tokens[_integer(token_id, size)] = (
            None if text is None else base64.b64decode(text, validate=True)
        )
    if not len(names) == len(kinds) == size:
        raise ValueError("it has another number of names or kinds")
    for token_id, name in settings["names"]:
        names[_integer(token_id, size)] = None if name is None else _text(name)

    def ids(name: str) -> list[int]:
        return [_integer(i, size) for i in settings[name]]

    bpe_parts = cast(BpeParts, {**settings["bpe"], "model": model})
    bpe_parts["added_tokens"] = [(i, name, flags) for i, name, flags in bpe_parts["added_tokens"]]
    bpe_parts["replaced"] = tuple((a, b) for a, b in bpe_parts.get("replaced", ()))
    kind, width = settings["kind"], settings["width"]
    if kind not in KINDS:
        raise ValueError(f"its kind is {kind!r}")
    parts = TokenizerParts(
        kind=kind,
        model="bpe",
        tokens=tokens,
        names=names,
        kinds=kinds,
        special_ids=ids("special_ids"),
        bpe=Bpe(**bpe_parts),
        bpe_parts=bpe_parts,
        special_tokens=_special_tokens(settings["special_tokens"], size),
        eos_token_ids=ids("eos_token_ids"),
        prefix_ids=ids("prefix_ids"),
        suffix_ids=ids("suffix_ids"),
        chat_templates={_text(k): _text(v) for k, v in settings["chat_templates"].items()},
        strip_first_space=settings["strip_first_space"] is True,
        strip_every_first_space=settings["strip_every_first_space"] is True,
        first_tokens={
            _integer(i, size): base64.b64decode(text, validate=True)
            for i, text in settings["first_tokens"]
        },
        width=None if width is None else _integer(width, MAX_WIDTH + 1),
        limits=[_text(limit) for limit in settings["limits"]],
        source=source,
    )
    findings = [
        Finding(_one_of(name, FINDINGS), _text(message), tuple(_integer(i, size) for i in found))
        for name, message, found in settings["findings"]
    ]
    return parts, findings


def _is_plain(name: str | None) -> bool:
    return name is not None and _BETWEEN_NAMES not in name


def _special_tokens(stated: Mapping[str, Any], size: int) -> SpecialTokens:
    def token(value: Mapping[str, Any]) -> SpecialToken:
        return SpecialToken(_integer(value["id"], size), _text(value["content"]))

    roles = {role: token(stated[role]) for role in ROLES if stated[role] is not None}
    return SpecialTokens(**roles, additional=tuple(map(token, stated["additional"])))


def _integer(value: Any, below: int) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise ValueError(f"{value!r} is no number below {below}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _one_of(value: Any, known: Mapping[str, Any]) -> str:
    if value not in known:
        raise ValueError(f"{value!r} is unknown")
    return _text(value)
