"""A case from its seed: its subject, and all questions about it."""

from __future__ import annotations

import json
import random
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import ffwd
from maskbench.conformance.differential import grammar_case, lexed_case, schemas
from maskbench.conformance.differential.court import Court
from maskbench.conformance.differential.grammar_case import RecognisedCase
from maskbench.conformance.differential.reports import CaseReport, Finding
from maskbench.conformance.differential.rules import FAMILIES
from maskbench.conformance.differential.schema_case import SchemaCase, escapes_of, written
from maskbench.conformance.differential.side_by_side import Contestant
from maskbench.conformance.gates.walks import Tokens, byte_tokens
from maskbench.conformance.grammars.cases import GrammarCase as CorpusCase
from maskbench.conformance.grammars.cases import read_corpus
from maskbench.conformance.grammars.command import is_bad, verdict
from maskbench.conformance.grammars.compare import CompareSettings, GrammarComparison
from maskbench.conformance.grammars.expected import read_expected
from maskbench.conformance.grammars.generated import generated
from maskbench.data import BUILTIN_CORPUS, Source, read_sources
from maskbench.documents import SHARED_WHITESPACE, Whitespace
from maskbench.engines import Engine, EngineSetup, find
from maskbench.engines.base import Compiled, RefusedError, short_reason, token_texts
from maskbench.tokenizer import OutputEncoder, TokenizerSpec
from maskbench.walk import describe_error

SUBJECT = "ffwd"
PEER = "llguidance-unforced"

_SCHEMA_WALKS = 6
_GRAMMAR_WALKS = 6
_CORPUS_WALKS = 3
_CORPUS_STEPS = 40
_PEER_TEXTS = 4


@dataclass(frozen=True)
class CaseSettings:
    """The same for all cases of a run."""

    tokenizer: TokenizerSpec
    schemas: Path = BUILTIN_CORPUS
    families: tuple[str, ...] = tuple(FAMILIES)


@dataclass(frozen=True)
class CaseTask:
    """A case to run; `alone` leaves out the peer."""

    seed: int
    alone: bool = False


def case_seed(seed: int, number: int) -> int:
    """Return the seed of a run's case."""
    return random.Random(f"differential {seed} {number}").getrandbits(48)


@dataclass
class Engines:
    """Engines by name and mode, each made when it is first needed."""

    tokenizer: TokenizerSpec
    texts: list[bytes | None] = field(default_factory=list)
    made: dict[tuple[str, Whitespace], tuple[Engine, Tokens]] = field(default_factory=dict)

    def contestant(
        self, name: str, whitespace: Whitespace, kind: str, text: str
    ) -> Contestant | str:
        """Return the engine with the grammar, or the reason of its refusal."""
        if (name, whitespace) not in self.made:
            engine = find(name)(EngineSetup(self.tokenizer, whitespace))
            tokens = Tokens(self.texts, self.tokenizer.eos_token_ids, engine.bitmask)
            self.made[name, whitespace] = engine, tokens
        engine, tokens = self.made[name, whitespace]
        try:
            compiled = _compile(engine, kind, text)
            # Some engines accept a grammar at compilation and refuse it with the first mask.
            session = compiled.session()
            session.fill()
        except RefusedError as refusal:
            return refusal.reason
        problem = session.problem()
        return short_reason(problem) if problem else Contestant(name, compiled, tokens)


def _compile(engine: Engine, kind: str, text: str) -> Compiled:
    engine.forget()
    return engine.compile(text) if kind == "json_schema" else engine.compile_grammar(kind, text)


class Cases:
    """Lives in a process of its own, with both engines and the judges."""

    def __init__(self, settings: CaseSettings) -> None:
        """Read the schemas. Raises `DataError` if that fails."""
        self._settings = settings
        self._engines = Engines(settings.tokenizer, token_texts(settings.tokenizer))
        self._bytes = byte_tokens()
        self._encoder = OutputEncoder(settings.tokenizer)
        self._schemas: list[Source] = read_sources(settings.schemas)
        self._grammars: list[CorpusCase] = [*read_corpus(), *generated()]
        self._expected = read_expected()
        self._comparison: GrammarComparison | None = None

    def __call__(self, task: CaseTask) -> CaseReport:
        """Run a case. Everything except a refusal or a documented limit is a finding."""
        try:
            return self._case(task)
        except Exception:
            # A fault of the comparison or of an engine: either way it must be examined.
            report = CaseReport(task.seed, "lost")
            why = traceback.format_exc(limit=-6)
            report.findings.append(Finding("case lost", "", "", {}, b"", None, (), why))
            return report

    def _case(self, task: CaseTask) -> CaseReport:
        source = random.Random(task.seed)
        weights = [FAMILIES[family] for family in self._settings.families]
        (family,) = source.choices(self._settings.families, weights)
        report = CaseReport(task.seed, family)
        try:
            if family == "schema":
                self._schema(report, source, task.alone)
            elif family == "lexed":
                self._lexed(report, source, task.alone)
            elif family == "corpus":
                self._corpus(report, source, task.alone)
            else:
                self._grammar(report, source, family, task.alone)
        except ffwd.LimitExceededError as error:
            report.add("ffwd limit", error.limit)
        return report

    def _schema(self, report: CaseReport, source: random.Random, alone: bool) -> None:
        drawn = schemas.draw(source, self._schemas)
        whitespace = source.choice(SHARED_WHITESPACE)
        report.name = drawn.name
        try:
            text = json.dumps(drawn.schema, ensure_ascii=False, allow_nan=False)
            text.encode()
            court = Court(drawn.schema)
        except ValueError as error:
            report.refused["judges"] = short_reason(str(error))
            return
        case = SchemaCase(drawn, court, whitespace, self._bytes, report, source)
        try:
            engine = SUBJECT if escapes_of(text) == "canonical" else f"{SUBJECT}-escapes"
            subject = self._engines.contestant(engine, whitespace, "json_schema", text)
            peer = None if alone else self._peer(report, whitespace, "json_schema", text)
            if isinstance(subject, str):
                report.refused[SUBJECT] = subject
            texts = [] if peer is None else case.texts_of_peer(peer, _PEER_TEXTS)
            for instance in drawn.instances:
                text_of_it = written(instance, Whitespace.COMPACT)
                texts += [] if text_of_it is None else [text_of_it]
            if isinstance(subject, str) and "Unsatisfiable" not in subject:
                return
            case.verdicts(texts)
            case.declared_order(texts)
            if not isinstance(subject, str):
                case.walks(subject, peer, _SCHEMA_WALKS, self._encoder.encode)
        except ffwd.LimitExceededError:
            raise
        except ffwd.UnsupportedSchemaError as error:
            report.refused[SUBJECT] = f"unsupported: {error.keyword}"
        except ffwd.FfwdError as error:
            self._raised(report, "json_schema", text, error)

    def _grammar(self, report: CaseReport, source: random.Random, family: str, alone: bool) -> None:
        drawn = grammar_case.draw(source, family)
        report.name = drawn.kind
        subject = self._engines.contestant(SUBJECT, Whitespace.FLEXIBLE, drawn.kind, drawn.text)
        peer = None
        if not alone:
            peer = self._peer(report, Whitespace.FLEXIBLE, drawn.kind, drawn.text)
        if isinstance(subject, str):
            # Every drawn grammar has a text.
            finding = Finding("ffwd raises", drawn.kind, drawn.text, {}, b"", None, (), subject)
            report.findings.append(finding)
            return
        try:
            RecognisedCase(drawn, report, source).walks(subject, peer, _GRAMMAR_WALKS)
        except ffwd.LimitExceededError:
            raise
        except ffwd.FfwdError as error:
            self._raised(report, drawn.kind, drawn.text, error)

    def _lexed(self, report: CaseReport, source: random.Random, alone: bool) -> None:
        text = lexed_case.draw(source)
        report.name = "lark"
        subject = self._engines.contestant(SUBJECT, Whitespace.FLEXIBLE, "lark", text)
        peer = None if alone else self._peer(report, Whitespace.FLEXIBLE, "lark", text)
        if isinstance(subject, str):
            # A terminal may consume everything that could follow it.
            report.refused[SUBJECT] = subject
            return
        try:
            case = lexed_case.LexedCase(text, report, source, self._lexed_peer)
            case.walks(subject, peer, _GRAMMAR_WALKS)
        except ffwd.LimitExceededError:
            raise
        except ffwd.FfwdError as error:
            self._raised(report, "lark", text, error)

    def _lexed_peer(self, text: str) -> Contestant | str:
        return self._engines.contestant(PEER, Whitespace.FLEXIBLE, "lark", text)

    def _corpus(self, report: CaseReport, source: random.Random, alone: bool) -> None:
        """Return a grammar of the corpus, with other walks than its own test has."""
        if alone:
            return
        peers = dict.fromkeys(("lark", "regex"), PEER)
        if self._comparison is None:
            setup = EngineSetup(self._settings.tokenizer, Whitespace.FLEXIBLE)
            self._comparison = GrammarComparison(
                CompareSettings(setup, SUBJECT, peers, 0, _CORPUS_WALKS, _CORPUS_STEPS)
            )
        case = source.choice([case for case in self._grammars if case.kind in peers])
        report.name = case.name
        found = self._comparison(case, source.getrandbits(32))
        report.walks, report.states = found.walks, found.masks
        report.bits = found.masks * self._settings.tokenizer.vocab_size
        what = verdict(found, self._expected.get(case.name), SUBJECT)
        if what == "equal" or what == "skipped":
            return
        if not is_bad(what):
            report.add("corpus", what)
            return
        for difference in found.differences:
            detail = (
                f"only ffwd {', '.join(difference.subject_only)}; "
                f"only the peer {', '.join(difference.peer_only)}"
            )
            report.findings.append(
                Finding("unexplained", case.kind, case.text, {}, difference.text, None, (), detail)
            )
        if not found.differences:
            if found.gave_up is not None and not found.wrong_examples:
                report.add("peer gave up", " ".join(found.gave_up.split())[:60])
                return
            detail = f"{what}: {found.refused} {found.wrong_examples}"
            report.findings.append(
                Finding("unexplained", case.kind, case.text, {}, b"", None, (), detail)
            )

    def _peer(
        self, report: CaseReport, whitespace: Whitespace, kind: str, text: str
    ) -> Contestant | None:
        found = self._engines.contestant(PEER, whitespace, kind, text)
        if isinstance(found, str):
            report.refused[PEER] = found
            return None
        return found

    @staticmethod
    def _raised(report: CaseReport, kind: str, text: str, error: Exception) -> None:
        report.findings.append(
            Finding("ffwd raises", kind, text, {}, b"", None, (), describe_error(error))
        )
