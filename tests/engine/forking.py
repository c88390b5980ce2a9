"""A process that forks while its threads are busy; `test_fork.py` runs it, with a limit of time.

    python forking.py FORKS [raw]

Prints `fine` where every child has seen what its parent sees. With `raw` it forks behind the back
of the hooks, to show what they are there for.
"""

import ctypes
import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import ffwd
from ffwd.adapters.shared.cache import GrammarCache
from ffwd.adapters.shared.requests import GrammarRequest

CHILD_SECONDS = 600
ROWS = 40
TEXTS = (b'{"key":["a","', b'{"k":[],"x":["', b"{", b'{"a":["b"]', b"")


def vocabulary(encode: Callable[[bytes], list[int]] = list) -> ffwd.Vocabulary:
    """Bytes, and pairs of letters, so that the masks are not all alike."""
    pairs = [bytes([a, b]) for a in b"abcdefgh" for b in b'abcdefgh"']
    tokens = [*(bytes([byte]) for byte in range(256)), *pairs]
    return ffwd.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)], encode=encode)


SHARED = vocabulary()
OPEN = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}}
GRAMMARS = [
    ffwd.compile(
        ffwd.json_schema(OPEN, whitespace="compact"),
        SHARED,
        limits=ffwd.Limits(memory_bytes=100_000),
    ),
    ffwd.compile(ffwd.regex("([a-h]{3,90}x?)*z"), SHARED),
]
CACHE = GrammarCache(SHARED, workers=2)


def different(number: int) -> ffwd.Grammar:
    """A grammar that has not been compiled yet."""
    return ffwd.json_schema(
        {"properties": {f"k{number}": {"pattern": f"^a{{{number % 90}}}[b-e]+"}}}
    )


def look(number: int) -> str:
    """What is seen of the shared grammars, alone and in a batch, and of a new one."""
    seen = hashlib.sha256()
    rows = ffwd.allocate_bitmask(ROWS, SHARED.vocab_size)
    grammar = GRAMMARS[0]
    matchers = []
    for index in range(ROWS):
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(TEXTS[index % len(TEXTS)] + b"abc" * (index % 7 == 8)))
        matchers.append(matcher)
    ffwd.fill_bitmasks(matchers, rows, threads=4)
    seen.update(rows.tobytes())
    for compiled in (*GRAMMARS, ffwd.compile(different(number), SHARED)):
        matcher = compiled.matcher()
        for _ in range(6):
            matcher.fill_bitmask(rows, 0)
            seen.update(rows[0].tobytes())
            matcher.accept_token(matcher.allowed_token_ids()[0])
            seen.update(repr(matcher.fast_forward_tokens()).encode())
    return seen.hexdigest()


def in_child(number: int, expected: str) -> None:
    """What a forked process does: the same, on this thread and on others, and with the cache."""
    assert look(number) == expected
    with ThreadPoolExecutor(3) as threads:
        assert set(threads.map(look, [number] * 3)) == {expected}
    SHARED.clear_memos()
    assert look(number) == expected
    request = GrammarRequest("regex", f"a{{{number}}}")
    CACHE.submit(request).result(timeout=CHILD_SECONDS)
    CACHE.get(GrammarRequest("regex", "in the making|x{2000}"))


def wait_for(child: int) -> None:
    """Waits until a process has ended well. Raises where it takes too long."""
    end = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, f"the forked process ended with {status}"
            return
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the forked process hangs")


def child_of(fork: Callable[[], int], work: Callable[[], None]) -> int:
    """A forked process that does some work."""
    child = fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return child


def main() -> None:
    """Forks, while threads are busy with everything that there is."""
    forks = int(sys.argv[1])
    fork = ctypes.PyDLL(None).fork if "raw" in sys.argv else os.fork
    expected = {number: look(number) for number in range(forks)}
    done = threading.Event()

    def busy(thread: int) -> None:
        number = thread * 1_000_000
        while not done.is_set():
            number += 1
            if thread == 0:
                ffwd.compile(different(number), SHARED)
            elif thread == 1:
                CACHE.submit(GrammarRequest("regex", f"[ab]{{1,{number % 500 + 1}}}")).result()
            elif thread == 2:
                SHARED.clear_memos()
                SHARED.encode(b"a" * (number % 900))
                time.sleep(0.001)
            else:
                look(number % forks)

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    try:
        for number in range(forks):
            time.sleep(0.003 * (number % 5))
            wait_for(child_of(fork, lambda n=number: in_child(n, expected[n])))
        if "raw" not in sys.argv:
            with multiprocessing.get_context("fork").Pool(2) as pool:
                found = pool.map_async(look, range(4)).get(timeout=CHILD_SECONDS)
                assert found == [expected[number] for number in range(4)]
    finally:
        done.set()
        for thread in threads:
            thread.join(timeout=CHILD_SECONDS)
    assert look(0) == expected[0]
    print("fine", flush=True)
    # Without waiting for the threads of the cache.
    os._exit(0)


if __name__ == "__main__":
    main()
