"""A process may fork while its threads use ffwd: what is forked goes on as its parent would.

`forking.py` is the process; here it is run with a limit of time, for what goes wrong is a hang.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")

PROGRAM = Path(__file__).with_name("forking.py")


def run(*command: str, seconds: float = 1200) -> "subprocess.CompletedProcess[str]":
    """What a new interpreter says. Interpreters from 3.12 on warn of every fork beside threads."""
    interpreter = [sys.executable, "-W", "ignore::DeprecationWarning"]
    return subprocess.run(
        [*interpreter, *command], capture_output=True, text=True, timeout=seconds, check=False
    )


def test_children_of_a_busy_process() -> None:
    """With what is known and not, rows of a batch, new grammars, threads, and the cache."""
    done = run(str(PROGRAM), "12")
    assert done.stdout == "fine\n", done.stderr
    assert done.returncode == 0


_CALLBACK = """
import os, threading, ffwd

forking = threading.Event()
# Hooks run in the reverse order, so this one says so before ffwd's waits.
os.register_at_fork(before=forking.set)
forked = []

def encode(data):
    # A fork in the middle of a call, by the thread that makes it: it does not wait for itself.
    if data == b"fork" and not forked:
        forked.append(os.fork())
    if data == b"slow":
        # Needs the lock of the interpreter, which the forking thread must give away.
        entered.set()
        forking.wait()
        ended.append(data)
    return list(data)

entered, ended = threading.Event(), []
vocabulary = ffwd.Vocabulary(
    [bytes([b]) for b in range(256)] + [None], eos_token_ids=[256], encode=encode
)
assert vocabulary.encode(b"fork") == list(b"fork")
if forked[0] == 0:
    assert vocabulary.encode(b"child") == list(b"child")
    again = os.fork()
    if again == 0:
        os._exit(vocabulary.encode(b"x") != [120])
    os._exit(os.waitpid(again, 0)[1])
assert os.waitpid(forked[0], 0)[1] == 0

slow = threading.Thread(target=vocabulary.encode, args=(b"slow",))
forking.clear()
slow.start()
entered.wait()
child = os.fork()
if child == 0:
    os._exit(vocabulary.encode(b"y") != [121])
# The fork has waited for the call.
assert ended == [b"slow"]
assert os.waitpid(child, 0)[1] == 0
slow.join()
print("fine")
"""


def test_forks_beside_and_within_calls_to_python() -> None:
    """An `encode` function is Python's: it needs the interpreter while ffwd waits for it."""
    done = run("-c", _CALLBACK)
    assert done.stdout == "fine\n", done.stderr
    assert done.returncode == 0


_OWN_LOCK = """
import os, threading

# A program that keeps a lock of its own whole over forks, with hooks that run after those of ffwd.
lock = threading.Lock()
os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
held, forking = threading.Event(), threading.Event()
os.register_at_fork(before=forking.set)
import ffwd

vocabulary = ffwd.Vocabulary([bytes([b]) for b in range(256)] + [None], eos_token_ids=[256])

def work():
    with lock:
        held.set()
        forking.wait()
        # Here the other thread has closed ffwd and waits for the lock.
        ffwd.compile(ffwd.regex("a{3}"), vocabulary)

worker = threading.Thread(target=work)
worker.start()
held.wait()
child = os.fork()
if child == 0:
    with lock:
        ffwd.compile(ffwd.regex("b{3}"), vocabulary)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
worker.join()
print("fine")
"""


def test_locks_of_the_program_are_no_dead_end() -> None:
    """Whoever holds one gets into ffwd, though a fork is under way that waits for the lock."""
    done = run("-c", _OWN_LOCK)
    assert done.stdout == "fine\n", done.stderr
    assert done.returncode == 0


_METRICS = """
import os, threading, ffwd.metrics

# As if another thread were within `enable` when the process is forked.
ffwd.metrics._lock.acquire()
child = os.fork()
if child == 0:
    ffwd.metrics.disable()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("fine")
"""


def test_a_lock_of_the_metrics_is_not_inherited() -> None:
    done = run("-c", _METRICS)
    assert done.stdout == "fine\n", done.stderr


def test_the_example_of_the_document() -> None:
    text = (PROGRAM.parents[2] / "docs/threads.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    done = run("-c", example)
    assert done.returncode == 0, done.stderr
