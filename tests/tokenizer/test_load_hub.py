"""Models on a hub: from the cache, from a server, and what is said without either."""

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from smalltokenizers import byte_level

from ffwd.tokenizer import TokenizerNotFoundError, load

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "someone/some-model"


def files() -> dict[str, bytes]:
    config = {"eos_token": "</s>", "chat_template": "{{ 1 }}"}
    return {
        "tokenizer.json": byte_level().to_str().encode(),
        "tokenizer_config.json": json.dumps(config).encode(),
        "model.safetensors": b"weights, which nobody may ask for",
    }


def cached(folder: Path) -> Path:
    """A cache with the model in it, as huggingface_hub lays it out."""
    model = folder / "models--someone--some-model"
    snapshot = model / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    for name, data in files().items():
        if name != "model.safetensors":
            (snapshot / name).write_bytes(data)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    return folder


def test_from_the_cache(tmp_path: Path) -> None:
    tokenizer = load(NAME, cache_dir=cached(tmp_path), local_files_only=True)
    assert tokenizer.kind == "huggingface"
    assert tokenizer.source == NAME
    assert tokenizer.encode("ab") == [256]
    assert tokenizer.eos_token_ids == (257,)
    assert dict(tokenizer.chat_templates) == {"default": "{{ 1 }}"}
    with pytest.raises(TokenizerNotFoundError, match="revision other"):
        load(NAME, cache_dir=tmp_path, local_files_only=True, revision="other")


def test_what_was_tried_is_said(tmp_path: Path) -> None:
    with pytest.raises(TokenizerNotFoundError) as raised:
        load("someone/gone", cache_dir=tmp_path / "cache", local_files_only=True)
    for part in ("someone/gone", str(tmp_path / "cache"), "not asked (offline)"):
        assert part in str(raised.value)


@pytest.mark.parametrize("name", ["a model with spaces", "two--dashes", "x" * 200, "ends.git"])
def test_names_that_no_model_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerNotFoundError):
        load(name, cache_dir=tmp_path, local_files_only=True)


@dataclass
class Hub:
    """A server with one model, for those who have the token if there is one."""

    address: str = ""
    token: str | None = None
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def hub() -> Iterator[Hub]:
    state = Hub()
    served = files()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer()

        def do_HEAD(self) -> None:
            self.answer()

        def answer(self) -> None:
            state.asked.append(self.path)
            path = self.path.partition("?")[0]
            wanted = f"Bearer {state.token}"
            if state.token is not None and self.headers.get("Authorization") != wanted:
                self.send(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
            elif path.startswith(f"/api/models/{NAME}"):
                listed: Any = [
                    {"type": "file", "path": name, "size": len(data), "oid": sha1(data).hexdigest()}
                    for name, data in served.items()
                ]
                if "/tree/" not in path:
                    siblings = [{"rfilename": name} for name in served]
                    listed = {"id": NAME, "sha": COMMIT, "siblings": siblings, "private": False}
                self.send(200, json.dumps(listed).encode(), {"Content-Type": "application/json"})
            elif path.startswith(f"/{NAME}/resolve/") and path.rpartition("/")[2] in served:
                data = served[path.rpartition("/")[2]]
                tag = f'"{sha1(data).hexdigest()}"'
                self.send(200, data, {"ETag": tag, "X-Repo-Commit": COMMIT})
            else:
                self.send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

        def send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(data))}).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


SCRIPT = """
import sys
from ffwd.tokenizer import TokenizerNotFoundError, info, load
try:
    said = info(sys.argv[1])
    tokenizer = load(sys.argv[1])
except TokenizerNotFoundError as error:
    print("refused:", error)
else:
    print(said.kind, said.vocab_size, tokenizer.encode("ab"), tokenizer.eos_token_ids)
"""


def loaded(name: str, hub: Hub, cache: Path, **environment: str) -> str:
    """What a process of its own says, for huggingface_hub reads its environment only once."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name],
        env=os.environ
        | {"HF_ENDPOINT": hub.address, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"}
        | {"HF_HUB_DISABLE_XET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_from_a_server_and_then_without_it(hub: Hub, tmp_path: Path) -> None:
    assert loaded(NAME, hub, tmp_path) == "huggingface 258 [256] (257,)"
    assert any("tokenizer.json" in path for path in hub.asked)
    assert not any("safetensors" in path for path in hub.asked)
    hub.asked.clear()
    assert loaded(NAME, hub, tmp_path, HF_HUB_OFFLINE="1") == "huggingface 258 [256] (257,)"
    assert hub.asked == []


def test_a_gated_model_needs_the_token(hub: Hub, tmp_path: Path) -> None:
    hub.token = "hf_something"
    said = loaded(NAME, hub, tmp_path)
    assert said.startswith("refused:")
    assert "without a token (HF_TOKEN)" in said
    assert hub.address in said
    assert "gated" in said
    assert loaded(NAME, hub, tmp_path, HF_TOKEN="hf_something").startswith("huggingface")


def test_a_model_that_is_not_there(hub: Hub, tmp_path: Path) -> None:
    said = loaded("someone/gone", hub, tmp_path)
    assert said.startswith("refused: someone/gone: there is no such file or directory")
    assert hub.address in said
