"""An engine for a language of a few byte strings, which misbehaves when its schema says so.

The schema is `{"language": [text, ...], "behave": how}`. A token is a byte; 256 ends. With the
member `log` each compilation adds a line to that file: the engine's name and the member `name`.
"""

import json
import os
import signal
import time

import numpy as np

from maskbench.engines.base import (
    Compiled,
    Engine,
    MissingEngineError,
    RefusedError,
    Session,
    mask_words,
)

END = 256


MIB = 1 << 20

kept = []
"""What an engine never lets go of."""


class FakePanic(BaseException):
    """As a panic of native code comes up: not an `Exception`."""


class FakeEngine(Engine):
    def __init__(self, setup):
        self.bitmask = np.zeros(mask_words(setup.tokenizer.vocab_size), dtype=np.int32)

    def versions(self):
        return {"fake": "1"}

    def compile(self, schema):
        parsed = json.loads(schema)
        behave = parsed.get("behave")
        if "log" in parsed:
            with open(parsed["log"], "a", encoding="utf-8") as log:
                name = parsed["name"].replace("{pid}", str(os.getpid()))
                log.write(f"{type(self).__name__} {name}\n")
        if behave == "slow":
            time.sleep(0.05)
        if behave == "grow without end":
            while True:
                kept.append(b"x" * (8 * MIB))
                time.sleep(0.001)
        if behave is not None and behave.startswith("keep MiB "):
            kept.append(b"x" * (int(behave.removeprefix("keep MiB ")) * MIB))
        if behave is not None and behave.startswith("use MiB "):
            assert b"x" * (int(behave.removeprefix("use MiB ")) * MIB)
        if behave == "MemoryError":
            raise MemoryError
        if behave == "bad_alloc":
            raise RuntimeError("std::bad_alloc")
        if behave == "abort without memory":
            os.write(2, b"memory allocation of 34359738368 bytes failed\n")
            os.abort()
        if behave == "be killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if behave == "refuse":
            raise RefusedError("unsupported: fake", "the fake keyword")
        if behave == "raise while compiling":
            raise RuntimeError("no such thing")
        if behave == "abort":
            os.write(2, b"about to abort\n")
            os.abort()
        if behave == "panic":
            raise FakePanic("index out of bounds")
        if behave == "exit":
            os._exit(7)
        if behave == "hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
            while True:
                time.sleep(60)
        if behave is not None and behave.startswith("be on "):
            assert os.sched_getaffinity(0) == {int(behave.removeprefix("be on "))}
        return FakeCompiled(self.bitmask, parsed["language"], behave)


class FakeCompiled(Compiled):
    def __init__(self, bitmask, language, behave):
        self.bitmask = bitmask
        self.language = [text.encode() for text in language]
        self.behave = behave

    def session(self):
        walk = FakeWalk(self)
        forced = None if self.behave == "no forced tokens" else walk.forced
        return Session(walk.fill, walk.accept, walk.problem, forced)


class FakeWalk:
    def __init__(self, compiled):
        self.compiled = compiled
        self.text = b""

    def following(self):
        rest = [w[len(self.text) :] for w in self.compiled.language if w.startswith(self.text)]
        return {word[0] if word else END for word in rest}

    def fill(self):
        if self.compiled.behave == "fail at the second byte" and len(self.text) == 1:
            raise RuntimeError("too complex")
        if self.compiled.behave == "slow third mask" and len(self.text) == 2:
            time.sleep(0.02)
        words = self.compiled.bitmask.view(np.uint32)
        words[:] = 0
        if self.compiled.behave == "no way on" and len(self.text) == 1:
            return
        for token in self.following():
            words[token // 32] |= np.uint32(1 << (token % 32))

    def accept(self, token):
        if token not in self.following() or self.compiled.behave == "accept nothing":
            return False
        if self.compiled.behave == "abort at the second byte" and len(self.text) == 1:
            os.abort()
        if token == END:
            return True
        self.text += bytes([token])
        return True

    def problem(self):
        if self.compiled.behave == "error state at the end" and self.following() == {END}:
            return "lost count"
        return None

    def forced(self):
        behave = self.compiled.behave
        if behave == "hang while forcing":
            time.sleep(3600)
        if behave == "wrong forced tokens":
            return [0]
        text = self.text
        while True:
            rest = {w[len(text)] if w != text else END for w in self.compiled.language
                    if w.startswith(text)}  # fmt: skip
            if len(rest) != 1 or END in rest:
                return list(text[len(self.text) :])
            text += bytes(rest)


class NotInstalledEngine(FakeEngine):
    def __init__(self, setup):
        raise MissingEngineError("pip install nothing")


class DiesAtStartEngine(FakeEngine):
    def __init__(self, setup):
        os._exit(3)


class SecondFakeEngine(FakeEngine):
    """The same under another name."""
