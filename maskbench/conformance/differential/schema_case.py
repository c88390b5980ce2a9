"""A case about a JSON Schema: masks beside the peer's, walks to the end, and verdicts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal

import ffwd
from maskbench.conformance.differential.case import DifferentialCase
from maskbench.conformance.differential.court import (
    Court,
    Judgement,
    without_narrower_formats,
    without_unasserted_formats,
)
from maskbench.conformance.differential.order import UnclearOrderError, in_declared_order
from maskbench.conformance.differential.reports import CaseReport
from maskbench.conformance.differential.schemas import DrawnSchema
from maskbench.conformance.differential.side_by_side import Contestant, Spot
from maskbench.conformance.differential.spelling import NUMBERS, PLAIN, SPACE, STRINGS, explaining
from maskbench.conformance.gates import fuzz
from maskbench.conformance.gates.guides import Guide
from maskbench.conformance.gates.walks import DEAD_ENDS, Ending, VocabularyTokens, Walker
from maskbench.documents import Whitespace, write_instance

_STEPS = 120
_FREE = (0, 5, 15, 40)
# How often an end is searched after a token of the peer's, and how long.
_TRIES = 3
_TRY_STEPS = 400

_LACKS = {NUMBERS: "number", PLAIN: "number", STRINGS: "character", SPACE: "whitespace"}
_NARROWER = {NUMBERS: "exponent", STRINGS: "escape", SPACE: "whitespace"}


def escapes_of(text: str) -> Literal["canonical", "any"]:
    """Return which escapes a schema is tried with: each in half of them, whatever else is drawn."""
    return "any" if random.Random(text).random() < 0.5 else "canonical"


class SchemaCase(DifferentialCase):
    """One schema, which both validators decide."""

    def __init__(
        self,
        drawn: DrawnSchema,
        court: Court,
        whitespace: Whitespace,
        byte_tokens: VocabularyTokens,
        report: CaseReport,
        source: random.Random,
    ) -> None:
        text = json.dumps(drawn.schema, ensure_ascii=False)
        super().__init__("json_schema", text, report, source)
        self._drawn = drawn
        self._court = court
        self._whitespace = whitespace
        self._bytes = byte_tokens
        self._options = {
            "whitespace": whitespace.value,
            "property_order": "declared",
            "numbers": "any",
            "escapes": escapes_of(text),
        }
        self._known: dict[bytes, Judgement] = {}

    # ------------------------------------------------------------------------------------ walks

    def walks(
        self,
        subject: Contestant,
        peer: Contestant | None,
        count: int,
        encode: Callable[[str], list[int]],
    ) -> None:
        """Walk through both masks, each to its end in the subject."""
        together = self._side_by_side(subject, peer)
        guide = Guide(self._drawn.schema, subject.tokens.single)
        valid = self._valid_texts()
        for number in range(count):
            follow: list[int] = []
            if number % 3 == 2 and valid:
                follow = encode(self._source.choice(valid))
                follow = follow[: self._source.randint(len(follow) // 2, len(follow))]
            taken = together.walk(
                self._source, guide, _STEPS, follow, free=self._source.choice(_FREE)
            )
            self._finish(taken)

    def _valid_texts(self) -> list[str]:
        texts = (written(instance, self._whitespace) for instance in self._drawn.instances)
        return [text for text in texts if text and self._judged(text.encode()).valid]

    def _finish(self, taken: list[int]) -> None:
        """Check that the end of a walk leads to a valid document."""
        text = self._completed(taken)
        if text is None:
            return
        judgement = self._judged(text)
        self._report.verdicts += 1
        if judgement.valid is False:
            self._invalid(text, text, None, judgement)
        elif judgement.valid is None:
            self._undecided(judgement)

    def _completed_otherwise(self, taken: Sequence[int], prefix: bytes) -> bytes | None:
        """Return the text as a walk through the subject's masks ends it."""
        subject = self._subject
        walker = Walker(self._drawn.schema, subject.compiled.session, subject.tokens)
        for _ in range(_TRIES):
            walk = walker.finish(self._source, taken)
            if walk.ending is Ending.VALID:
                return walk.text
            if walk.ending in DEAD_ENDS:
                self._find("ffwd has no way on", prefix, None, f"{walk.text!r}: {walk.detail}")
                return None
        self._report.add("no end found", "of ffwd")
        return None

    # ----------------------------------------------------------------------------------- tokens

    def _examine(self, spot: Spot) -> None:
        if spot.only == "subject":
            self._examine_subject(spot)
        else:
            self._examine_peer(spot)

    def _examine_subject(self, spot: Spot) -> None:
        """Examine a token that only ffwd allows: its text must be valid."""
        token = self._subject.tokens.texts[spot.token]
        if token is None and not spot.is_end:
            self._find("ffwd contradicts itself", spot.prefix, None, f"token {spot.token}: no text")
            return
        text: bytes | None = spot.prefix
        if not spot.is_end:
            text = self._completed([*spot.taken, spot.token])
        if text is None:
            return
        judgement = self._judged(text)
        if judgement.valid is False:
            self._invalid(text, spot.prefix, token, judgement)
        elif judgement.valid is None:
            self._undecided(judgement)
        else:
            changes = explaining(text.decode(), self._whitespace, self._peer_accepts)
            if changes is None:
                self._report.add("peer lacks: value", spot.where)
            elif not changes:
                self._report.add("peer lacks: token")
            for change in changes or ():
                self._report.add(f"peer lacks: {_LACKS[change]}")

    def _examine_peer(self, spot: Spot) -> None:
        """Examine a token that only the peer allows: none of its texts may be valid."""
        assert self._peer is not None
        token = self._peer.tokens.texts[spot.token]
        if token is None and not spot.is_end:
            self._report.add("peer wrong: no text", "a special token")
            return
        walker = Walker(
            self._drawn.schema, self._peer.compiled.session, self._peer.tokens, _TRY_STEPS
        )
        judgement = None
        for _ in range(_TRIES):
            text = spot.prefix
            if not spot.is_end:
                walk = walker.finish(self._source, [*spot.taken, spot.token])
                if walk.ending in DEAD_ENDS:
                    self._report.add("peer wrong: dead end")
                    return
                if walk.ending is Ending.FAILED:
                    self._report.add("peer wrong: gave up")
                    return
                if walk.ending is not Ending.VALID:
                    continue
                text = walk.text
            judgement = self._judged(text)
            if judgement.valid or spot.is_end:
                break
        if judgement is None:
            self._report.add("no end found")
        elif judgement.valid:
            self._explain_refusal(text, spot.prefix, token)
        elif judgement.ending is Ending.INVALID:
            self._report.add("peer wrong: invalid", judgement.keywords)
        elif judgement.ending is Ending.REPEATED_KEY:
            self._report.add("peer wrong: key twice")
        elif judgement.ending is Ending.NOT_JSON:
            self._report.add("peer wrong: not JSON")
        else:
            self._undecided(judgement)

    def _peer_accepts(self, text: str) -> bool:
        assert self._peer is not None
        return self._peer.accepts(text.encode())

    # ------------------------------------------------------------------------------- documented

    def _explain_refusal(self, text: bytes, prefix: bytes, token: bytes | None) -> None:
        """Return why ffwd rejects a valid document: a documented reason, or a finding."""
        written = text.decode()
        changes = explaining(written, self._whitespace, self._accepts_declared)
        if changes is not None and not changes:
            detail = f"the bytes of {written!r} are accepted, its token is not allowed"
            self._find("ffwd contradicts itself", prefix, token, detail, ("peer",))
            return
        rule = None
        if changes is None:
            changes = explaining(written, self._whitespace, self._accepts_any)
            rule = "ffwd narrower: order"
        if changes is None:
            changes = explaining(written, self._whitespace, self._accepts_without_formats)
            rule = self._rule_of_formats(written)
        # ffwd promises all plain spellings of a number.
        if changes is None or PLAIN in changes:
            detail = f"{written!r} is valid"
            self._find("ffwd refuses what is valid", prefix, token, detail, ("peer",))
            return
        if rule is not None:
            self._report.add(rule)
        for change in changes:
            self._report.add(f"ffwd narrower: {_NARROWER[change]}")

    def _accepts_declared(self, text: str) -> bool:
        return fuzz.accepts(self._declared, text)

    def _accepts_any(self, text: str) -> bool:
        return fuzz.accepts(self._any_order, text)

    def _accepts_without_formats(self, text: str) -> bool:
        return fuzz.accepts(self._formatless, text)

    @cached_property
    def _declared(self) -> ffwd.CompiledGrammar | None:
        return self._compiled(self._drawn.schema, "declared")

    @cached_property
    def _any_order(self) -> ffwd.CompiledGrammar | None:
        return self._compiled(self._drawn.schema, "any")

    @cached_property
    def _formatless(self) -> ffwd.CompiledGrammar | None:
        schema = without_unasserted_formats(without_narrower_formats(self._drawn.schema))
        return self._compiled(schema, "any")

    def _rule_of_formats(self, text: str) -> str:
        """Return the rule about a text that is accepted without formats."""
        grammar = self._compiled(without_unasserted_formats(self._drawn.schema), "any")
        changes = explaining(text, self._whitespace, lambda text: fuzz.accepts(grammar, text))
        return f"ffwd narrower: {'format' if changes is None else 'dialect'}"

    def _compiled(
        self, schema: Any, order: Literal["declared", "any"]
    ) -> ffwd.CompiledGrammar | None:
        """Return the schema compiled with one token per byte, to check only the grammar."""
        grammar = ffwd.json_schema(
            schema,
            property_order=order,
            numbers="any",
            escapes=escapes_of(self._text),
            whitespace=self._whitespace.value,
        )
        try:
            return ffwd.compile(grammar, self._bytes.vocabulary)
        except ffwd.UnsatisfiableSchemaError:
            return None

    # --------------------------------------------------------------------------------- verdicts

    def verdicts(self, texts: list[str]) -> None:
        """Compare verdicts on generated and edited documents, and these, with both validators."""
        report = fuzz.FuzzReport()
        fuzz.compare(
            report, self._drawn.schema, self._court.judges, self._bytes, self._source, texts
        )
        self._report.verdicts += report.pairs + report.walks
        if report.disagreements or report.disputed:
            self._report.classes["judges differ"] += report.disagreements + len(report.disputed)
        for failure in report.failures:
            text = failure.text.encode()
            options = {"whitespace": "compact", "property_order": "any", "numbers": "any"}
            if failure.expected:
                if fuzz.accepts(self._formatless_compact, failure.text):
                    self._report.add(self._rule_of_formats(failure.text))
                    continue
                what = "ffwd refuses what is valid"
            elif failure.expected is None:
                what = "ffwd has no way on"
            else:
                what = "ffwd accepts what is invalid"
            self._find(what, text, None, failure.detail, options=options)

    def declared_order(self, texts: list[str]) -> None:
        """Check that valid documents are accepted with properties in the declared order."""
        schema = self._drawn.schema
        for text in texts:
            try:
                instance = in_declared_order(schema, json.loads(text), schema)
            except (UnclearOrderError, RecursionError):
                continue
            ordered = written(instance, self._whitespace)
            if ordered is None or self._judged(ordered.encode()).valid is not True:
                continue
            self._report.verdicts += 1
            # The other comparison covers any order.
            if not self._accepts_declared(ordered) and self._accepts_any(ordered):
                detail = "valid, and in the order of declaration"
                self._find("ffwd refuses what is valid", ordered.encode(), None, detail)

    @cached_property
    def _formatless_compact(self) -> ffwd.CompiledGrammar | None:
        schema = without_unasserted_formats(without_narrower_formats(self._drawn.schema))
        return fuzz.compile_schema(schema, self._bytes)

    def texts_of_peer(self, peer: Contestant, count: int) -> list[str]:
        """Return documents that the peer's masks lead to, written without whitespace."""
        walker = Walker(self._drawn.schema, peer.compiled.session, peer.tokens, _TRY_STEPS)
        found = []
        for _ in range(count):
            walk = walker.walk(self._source)
            if walk.ending is Ending.VALID:
                try:
                    found.append(fuzz.write(json.loads(walk.text)))
                except ValueError:
                    continue
        return found

    # ----------------------------------------------------------------------------------- report

    def _judged(self, text: bytes) -> Judgement:
        if text not in self._known:
            self._known[text] = self._court.judge(text)
        return self._known[text]

    def _undecided(self, judgement: Judgement) -> None:
        differ = judgement.ending is not Ending.UNJUDGED
        self._report.add("judges differ" if differ else "not judged")

    def _invalid(
        self, text: bytes, prefix: bytes, token: bytes | None, judgement: Judgement
    ) -> None:
        what = "ffwd accepts what is invalid"
        if judgement.ending in (Ending.NOT_JSON, Ending.REPEATED_KEY):
            what = "ffwd writes no JSON"
        detail = f"{text.decode(errors='replace')!r}: {judgement.ending.value}, {judgement.detail}"
        self._find(what, prefix, token, detail)


def written(instance: object, whitespace: Whitespace) -> str | None:
    """Return the text of an instance; None for a lone surrogate or a number that is NaN."""
    try:
        return write_instance(instance, whitespace)
    except ValueError:
        return None
