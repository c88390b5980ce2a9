"""Conversion of a tokenizer.json's normalizer and pre-tokenizer to the native stages.

Both are chains of steps that split a text, and also rewrite it: spaces as `▁`, bytes as GPT-2's
characters. The native tokenizer works on the original text. It keeps only the splits, whether the
text is composed first (NFC) and where a space is added.
"""

from collections.abc import Iterator
from typing import Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.parts import BpeParts, DummySpace, Stage
from ffwd.tokenizer.pieces import PieceWriting
from ffwd.tokenizer.source import summary

_PREPEND_SCHEMES: dict[str, DummySpace] = {"always": "always", "first": "first", "never": "never"}


def read_stages(
    normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None, writing: PieceWriting
) -> BpeParts:
    """Return the stages, dummy space and normalization of the parts of a tokenizer.json.

    `writing` is the decoder's notation of pieces.

    Raises `VocabularyError`, which names the step, for one that changes or drops text and for an
    unknown one.
    """
    chain = _Chain(writing)
    for step in steps(normalizer, "normalizers"):
        chain.normalize(step)
    for step in steps(pre_tokenizer, "pretokenizers"):
        chain.cut(step)
    return chain.parts()


class _Chain:
    """The steps so far."""

    def __init__(self, writing: PieceWriting) -> None:
        self.writing = writing
        self.stages: list[Stage] = []
        self.compose = False
        self.dummy_space: DummySpace = "never"
        self.dummy_space_before_space = True
        self.bytes_are_written = False
        self.written: dict[str, str] = {}
        """What stands for what in the text by now: `▁` for a space."""

    def normalize(self, step: dict[str, Any]) -> None:
        kind = step.get("type")
        if kind == "NFC" and not self.bytes_are_written:
            self.compose = True
        elif kind == "Prepend" and (step.get("prepend"), " ") in self.writing.replacements:
            self.dummy_space = "always"
        elif kind == "Replace" and self._writes_pieces(step):
            self.written[step["content"]] = step["pattern"]["String"]
        elif kind == "ByteLevel" and self.writing.byte_level:
            self.bytes_are_written = True
        else:
            raise VocabularyError(
                f"the tokenizer's normalizer changes text ({summary(step)}), so that its tokens "
                "cannot express every text; supported are NFC and those that write spaces in "
                "another way"
            )

    def _writes_pieces(self, step: dict[str, Any]) -> bool:
        return (step["content"], step["pattern"].get("String")) in self.writing.replacements

    def cut(self, step: dict[str, Any]) -> None:
        kind = step.get("type")
        if kind == "ByteLevel" and self.writing.byte_level:
            if step.get("add_prefix_space"):
                self._prepend("always", step)
            if step.get("use_regex", True):
                self._add({"type": "ByteLevel"}, step)
            self.bytes_are_written = True
        elif kind == "Metaspace" and (step["replacement"], " ") in self.writing.replacements:
            self._prepend(_PREPEND_SCHEMES[step.get("prepend_scheme", "always")], step)
            self.written[step["replacement"]] = " "
            if step.get("split", True):
                self._add({"type": "Metaspace"}, step)
        elif kind == "Split" and not _drops(step):
            self._split(step)
        elif kind == "Punctuation" and not _drops(step):
            self._add({"type": "Punctuation", "behavior": step["behavior"]}, step)
        elif kind == "Digits":
            self._add({"type": "Digits", "individual_digits": step["individual_digits"]}, step)
        else:
            raise VocabularyError(
                "the tokenizer's pre-tokenizer drops text or is not known "
                f"({summary(step)}): supported are ByteLevel, Metaspace, Split, Punctuation and "
                "Digits"
            )

    def _prepend(self, where: DummySpace, step: dict[str, Any]) -> None:
        if where == "never":
            return
        if self.stages or self.dummy_space != "never":
            raise VocabularyError(
                "the tokenizer's pre-tokenizer puts a space before what an earlier step has cut "
                f"or put one before ({summary(step)})"
            )
        self.dummy_space, self.dummy_space_before_space = where, False

    def _split(self, step: dict[str, Any]) -> None:
        pattern = step["pattern"]
        if self.written and "Regex" in pattern:
            raise VocabularyError(
                "the tokenizer's pre-tokenizer has a pattern for text whose spaces are written "
                f"in another way ({summary(step)})"
            )
        if self.written:
            text = pattern["String"]
            if any(meant in text for meant in self.written.values()) and not step.get("invert"):
                return  # by now none is left in the text, so the pattern matches nowhere
            for written, meant in self.written.items():
                text = text.replace(written, meant)
            pattern = {"String": text}
        stage = {
            "type": "Split",
            "pattern": pattern,
            "behavior": step["behavior"],
            "invert": bool(step.get("invert")),
        }
        self._add(stage, step)

    def _add(self, stage: Stage, step: dict[str, Any]) -> None:
        if self.bytes_are_written:
            raise VocabularyError(
                "the tokenizer's pre-tokenizer cuts text whose bytes are written as characters "
                f"({summary(step)})"
            )
        self.stages.append(stage)

    def parts(self) -> BpeParts:
        if self.writing.byte_level and not self.bytes_are_written:
            raise VocabularyError(
                "the tokenizer's decoder reads bytes, which neither its normalizer nor its "
                "pre-tokenizer writes (ByteLevel)"
            )
        for written, meant in self.writing.replacements:
            if written not in self.written:
                raise VocabularyError(
                    f"the tokenizer's decoder replaces {written!r} by {meant!r}, and neither its "
                    "normalizer nor its pre-tokenizer does the opposite"
                )
        return BpeParts(
            stages=self.stages,
            dummy_space=self.dummy_space,
            dummy_space_before_space=self.dummy_space_before_space,
            compose=self.compose,
            replaced=self.writing.replacements,
        )


def _drops(step: dict[str, Any]) -> bool:
    """Return whether a step drops its matches.

    Patterns that match everything are written as a step that drops what does *not* match.
    """
    return step.get("behavior") == "Removed" and not step.get("invert")


def steps(state: dict[str, Any] | None, plural: str) -> Iterator[dict[str, Any]]:
    """Yield the steps of a part of a tokenizer.json; `plural` is the key of a sequence."""
    if state is None:
        return
    if state.get("type") == "Sequence":
        for step in state[plural]:
            yield from steps(step, plural)
    else:
        yield state
