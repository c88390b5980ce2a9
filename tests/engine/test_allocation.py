"""What happens where the system has no more memory to give; in processes of their own."""

import signal
import subprocess
import sys

import pytest

_LIMITED = """
import resource, numpy
texts = [f"{number:020}" for number in range(50_000)]
# Before ffwd is there, for its allocator reserves addresses for later.
with open("/proc/self/statm") as statm:
    held = int(statm.read().split()[0]) * resource.getpagesize()
most = held + (120 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
import ffwd
TOKENS = [bytes([b]) for b in range(256)] + [None]
"""

_WIDTH = """
try:
    ffwd.Vocabulary(TOKENS, eos_token_ids=[256], width=1 << 24)
except ffwd.VocabularyError as error:
    assert "not enough memory for a width of 16777216 ids" in str(error), error
else:
    raise AssertionError("there was memory for it")
vocabulary = ffwd.Vocabulary(TOKENS, eos_token_ids=[256])
matcher = ffwd.compile(ffwd.choice(["yes", "no"]), vocabulary).matcher()
assert matcher.allowed_token_ids() == [ord("n"), ord("y")]
try:
    ffwd.allocate_bitmask(1 << 20, 1 << 24)
except MemoryError:
    print("fine")
"""

_LITTLE_BY_LITTLE = """
vocabulary = ffwd.Vocabulary(TOKENS, eos_token_ids=[256])
kept = []
for number in range(60):
    choice = ffwd.choice([text + str(number) for text in texts])
    try:
        kept.append(ffwd.compile(choice, vocabulary))
    except ffwd.LimitExceededError as error:
        assert (error.limit, error.is_temporary) == ("system_memory", True), error
        assert "the system had no memory for" in str(error), error
        break
else:
    raise AssertionError("there was memory for it")
matcher = kept[0].matcher()
assert matcher.accept_tokens(list((texts[7] + "0").encode())) and matcher.is_accepting()
del kept, matcher
matcher = ffwd.compile(ffwd.choice(texts[:10_000]), vocabulary).matcher()
assert matcher.accept_tokens(list(texts[7].encode())) and matcher.is_accepting()
print("fine")
"""

_NO_CALL = """
tokens = TOKENS + [text.encode() for text in texts]
kept = [ffwd.Vocabulary(tokens, eos_token_ids=[256]) for _ in range(200)]
print("there was memory for it")
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the limit on memory is Linux's"
)


def run(program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", _LIMITED + program]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def test_what_one_number_asks_for_is_refused() -> None:
    """A width and a batch are numbers that may be anything; the process goes on."""
    done = run(_WIDTH)
    assert done.stdout == "fine\n", done.stderr


def test_a_call_that_is_refused_memory_ends_by_an_error() -> None:
    """And gives back what it took: with less that is held, the next ones go on."""
    done = run(_LITTLE_BY_LITTLE)
    assert done.stdout == "fine\n", done.stderr


def test_elsewhere_allocations_that_fail_end_the_process() -> None:
    """As docs/memory.md says: at once, by a signal and with a message. Nothing wrong is told."""
    done = run(_NO_CALL)
    assert done.returncode == -signal.SIGABRT, done
    assert done.stdout == ""
    assert "memory allocation of" in done.stderr
