"""`python -m maskbench speed tokenizers`: that it runs, and that its texts are what they say."""

import os

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.speed.tokenizers import texts


@pytest.fixture
def keep_environment(monkeypatch):
    for name in ("RAYON_NUM_THREADS", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield
    if processors is not None:
        os.sched_setaffinity(0, processors)


@pytest.mark.usefixtures("keep_environment")
def test_all_tables_are_printed(tmp_path):
    path = tmp_path / "some text.txt"
    path.write_text("Some words, 123 of them; naïve 日本語.\n" * 800, encoding="utf-8")
    arguments = [
        "speed",
        "tokenizers",
        "--tokenizer",
        "builtin",
        "--text",
        str(path),
        "--rounds",
        "1",
    ]
    result = CliRunner().invoke(main, [*arguments, "--no-adversarial"])
    assert result.exit_code == 0, result.output
    assert "MB/s" in result.output
    assert "texts in progress" in result.output
    assert "other ids" not in result.output


def test_builtin_texts_have_the_size_asked_for():
    for text in texts.builtin(50_000).values():
        assert 49_990 <= len(text.encode()) <= 50_000
    for text in texts.adversarial(1000).values():
        assert len(text) == 1000
