"""The real engines behind the interface, on the built-in corpus."""

import pytest

from maskbench.data import BUILTIN_CORPUS, parse_case, read_sources
from maskbench.documents import Whitespace, prepare
from maskbench.engines import EngineSetup, find
from maskbench.runner import RunSettings, run
from maskbench.tokenizer import HuggingFaceEncoder, resolve
from maskbench.verdicts import Verdict
from maskbench.walk import Walker

PLAIN = ("builtin_person", "builtin_tree", "builtin_number_bounds", "builtin_tool_call_choice")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return resolve("builtin", tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def cases():
    return [parse_case(source) for source in read_sources(BUILTIN_CORPUS)]


def jobs_of(cases, spec, whitespace):
    encoder = HuggingFaceEncoder(spec)
    return [prepare(case, i, encoder, whitespace).job for i, case in enumerate(cases)]


@pytest.mark.parametrize("whitespace", list(Whitespace))
@pytest.mark.parametrize("name", ["ffwd", "llguidance", "xgrammar"])
def test_every_engine_passes_plain_schemas(spec, cases, name, whitespace, tmp_path):
    if name != "ffwd":
        pytest.importorskip(name)
    chosen = [case for case in cases if case.id in PLAIN]
    assert len(chosen) == len(PLAIN)
    setup = EngineSetup(spec, whitespace, cold_store=True)
    jobs = jobs_of(chosen, spec, whitespace)
    log = run([name], [jobs], setup, RunSettings(), tmp_path)[name]
    assert {r.id: (r.verdict, r.detail) for r in log.records} == dict.fromkeys(
        PLAIN, (Verdict.PASSED, None)
    )
    assert log.versions[name]
    for record in log.records:
        if name == "xgrammar":
            assert record.forced is None
        else:
            assert record.forced.tokens > record.forced.forced >= 0
    if whitespace is not Whitespace.FLEXIBLE and name != "xgrammar":
        assert sum(record.forced.forced for record in log.records) > 0


def test_ffwd_is_never_wrong_on_the_corpus(spec, cases):
    engine = find("ffwd")(EngineSetup(spec, Whitespace.FLEXIBLE))
    walker = Walker(engine, spec.eos_token_ids)
    forced = tokens = 0
    for case, job in zip(cases, jobs_of(cases, spec, Whitespace.FLEXIBLE), strict=True):
        measured, compiled = walker.measure(job)
        assert measured.failed is None, case.id
        outcomes = [document.outcome == "accepted" for document in measured.documents]
        if measured.refused is None:
            assert outcomes == [test.valid for test in case.tests], case.id
            count = walker.count_forced(compiled, job.documents, measured)
            assert count.noncanonical == 0, case.id
            forced, tokens = forced + count.forced, tokens + count.tokens
        else:
            assert measured.refused[0].startswith("unsupported: "), case.id
    assert forced / tokens > 0.1
