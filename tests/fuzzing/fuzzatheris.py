"""Fuzzes a Python target with Atheris: `python fuzzatheris.py TARGET [libFuzzer options]`."""

import sys

import atheris

TARGET = sys.argv.pop(1)
# The modules of ffwd are measured; those of others are only run.
with atheris.instrument_imports(include=["ffwd"]):
    from fuzztargets import TARGETS


def main() -> None:
    """Never returns: libFuzzer ends the process."""
    atheris.Setup(sys.argv, TARGETS[TARGET])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
