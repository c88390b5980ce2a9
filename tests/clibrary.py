"""What cargo builds of the C library, for the tests."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CRATE = ROOT / "ffwd/native/crates/capi"


def artifacts(kind: str, *options: str) -> dict[str, Path]:
    """What `cargo test` builds of a kind of target, by name; nothing is built twice."""
    command = ["cargo", "test", "--no-run", "--quiet", "--locked", "--message-format", "json"]
    command += ["--manifest-path", str(ROOT / "ffwd/native/Cargo.toml"), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return {
        message["target"]["name"]: Path(name)
        for message in map(json.loads, done.stdout.splitlines())
        if message["reason"] == "compiler-artifact" and kind in message["target"]["kind"]
        for name in message["filenames"]
        if Path(name).suffix in {"", ".exe", ".so", ".dylib", ".dll"}
        and not message["profile"]["test"]
    }


def build(folder: Path, *, system_allocator: bool = False) -> Path:
    """Put the library into a folder."""
    options = ["--no-default-features"] if system_allocator else []
    (library,) = artifacts("cdylib", *options).values()
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(library, folder))


def compiled(source: Path, library: Path, folder: Path, *flags: str) -> Path:
    """Compile a program and link it with a library; any warning is an error."""
    compiler = {".c": "cc", ".cpp": "c++"}[source.suffix]
    program = folder / source.stem
    command = [compiler, *flags, "-Wall", "-Wextra", "-Werror", "-g", "-I", CRATE / "include"]
    command += [source, "-L", library.parent, "-lffwd", f"-Wl,-rpath,{library.parent}"]
    subprocess.run([*command, "-o", program], check=True)
    return program


def watched(command: Sequence[object]) -> "subprocess.CompletedProcess[str]":
    """Run a program under valgrind; a leak is the status 9."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    valgrind = ["valgrind", "--quiet", "--leak-check=full", "--error-exitcode=9"]
    valgrind += ["--errors-for-leak-kinds=definite,indirect"]
    valgrind += ["--show-leak-kinds=definite,indirect"]
    return subprocess.run([*valgrind, *map(str, command)], capture_output=True, text=True)
