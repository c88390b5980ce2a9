"""What the README and docs/ show runs, and what they point to is there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import ffwd
import ffwd.model
import ffwd.tokenizer
from maskbench.runs.command import run_command
from maskbench.tokenizer import describe, train_builtin

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
# The name that the examples use for a folder of the reader's own.
MODEL = "path/of/a/model"


def blocks(language: str, document: str = "README.md") -> list[str]:
    """The fenced blocks of one language in the README or another document, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder below which the examples find a model: random, with the built-in tokenizer."""
    folder: Path = tmp_path_factory.mktemp("readme")
    target = folder / MODEL
    train_builtin(target)
    spec = describe(target, "builtin")
    (end,) = spec.eos_token_ids
    (target / "chat_template.jinja").write_text(
        "{% for message in messages %}{{ message.role }}: {{ message.content }}<|end|>\n"
        "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}",
        encoding="utf-8",
    )
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=spec.vocab_size + 24,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=256,
            bos_token_id=None,
            eos_token_id=end,
            pad_token_id=end,
        )
    ).save_pretrained(target)
    return folder


def run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a block defines."""
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_the_first_example_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model chooses a layout and keeps to it: no token is spent on whitespace."""
    code = blocks("python")[0]
    names = run(code, tmp_path, monkeypatch)
    generation = names["generation"]
    value = generation.value.model_dump()
    assert generation.text in (json.dumps(value), json.dumps(value, separators=(",", ":")))
    assert generation.complete
    (said,) = re.findall(r"^print.*  # (.*)$", code, re.MULTILINE)
    assert capsys.readouterr().out.strip() == said
    *written, end = generation.tokens
    assert end == names["tokenizer"].eos_token_id
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    stats = generation.stats
    assert f"The answer has {len(written)} tokens and the end token." in readme
    assert (
        f"forces {stats.forced_tokens} of them; the model runs {stats.forward_passes} times."
        in readme
    )


def test_the_page_of_a_loop_runs(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints a document that is valid against its schema, and forces part of it."""
    (code,) = blocks("python", "docs/own_loop.md")
    names = run(code, model_folder, monkeypatch)
    value = json.loads(capsys.readouterr().out)
    assert set(value) == {"name", "status"}
    assert len(value["name"]) <= 20
    assert value["status"] in {"new", "paid", "shipped"}
    assert names["matcher"].num_tokens > 5


def test_the_page_of_transformers_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other, and every answer is what it was to be."""
    names = run("".join(blocks("python", "docs/transformers.md")), model_folder, monkeypatch)
    output = names["output"][0, names["prompt"]["input_ids"].shape[1] :]
    text = names["tokenizer"].decode(output, skip_special_tokens=True)
    assert text in {"yes, gladly", "no, never"}
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", names["date"])
    assert names["answers"][0] in {"yes", "no"}
    assert re.fullmatch("[0-9]{4}", names["answers"][1])


def test_the_tokenizer_page_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other and check what they show."""
    pages = blocks("python", "docs/tokenizer.md")
    assert len(pages) == 4
    run("".join(pages), model_folder, monkeypatch)


def test_the_streaming_page_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise."""
    first, second, third = blocks("python", "docs/streaming.md")
    run(first + second + third, model_folder, monkeypatch)


def test_the_page_of_chat_formats_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other and check what they show."""
    first, second = blocks("python", "docs/chat_formats.md")
    run(first + second, model_folder, monkeypatch)


def test_the_page_of_chat_templates_runs(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It checks what it shows."""
    (block,) = blocks("python", "docs/chat.md")
    run(block, model_folder, monkeypatch)


def test_the_page_of_regular_expressions_runs(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shows grammars that compile."""
    (block,) = blocks("python", "docs/regex.md")
    run("import ffwd\n" + block, model_folder, monkeypatch)


def test_the_page_of_grammars_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other, and what they make can be compiled."""
    names = run("".join(blocks("python", "docs/grammars.md")), model_folder, monkeypatch)
    vocabulary = ffwd.tokenizer.from_huggingface(MODEL)
    for name in ("grammar", "same", "expression", "nested", "whole", "after_prompt"):
        assert ffwd.compile(names[name], vocabulary).matcher().num_tokens == 0


def test_the_explain_example_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its assertions hold: what is explained, as text and as data."""
    names = run("".join(blocks("python", "docs/explain.md")), model_folder, monkeypatch)
    assert names["answer"].refused_byte == ord("t")


def test_the_page_of_events_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other, and their assertions hold."""
    names = run("".join(blocks("python", "docs/events.md")), model_folder, monkeypatch)
    assert [event.pointer for event in names["ended"]] == ["/city"]


def test_the_page_of_tools_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other."""
    names = run("".join(blocks("python", "docs/tools.md")), model_folder, monkeypatch)
    assert "tool_arguments" in repr(names["grammar"])


def test_the_page_of_types_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other and check what they show."""
    names = run("".join(blocks("python", "docs/types.md")), model_folder, monkeypatch)
    assert names["order"].item == "tea"


def test_the_page_of_pictures_runs(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks go on from each other, and the three recordings are what they were to be."""
    names = run("".join(blocks("python", "docs/view.md")), model_folder, monkeypatch)
    assert names["recording"].text in {b"yes, gladly", b"no, never"}
    assert (model_folder / "generation.html").read_text("utf-8").startswith("<!doctype html>")
    assert names["replayed"].text + names["replayed"].refused == b"no, newer"
    assert "may not come" in names["replayed"].refusal
    assert names["mine"].text in {b"yes, gladly", b"no, never"}


def test_every_python_block_is_run() -> None:
    """A second one would need a test of its own."""
    assert len(blocks("python")) == 1


def links() -> Iterator[tuple[Path, str]]:
    """Every relative link of the documents."""
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            # What begins with # lies in the document itself.
            if not re.match(r"[a-z]+://|#", target):
                yield document, target.partition("#")[0]


def test_links_lead_somewhere() -> None:
    """Also those between documents."""
    found = list(links())
    assert len(found) >= 5
    assert not [(str(a), b) for a, b in found if not (a.parent / b).is_file()]


def test_paths_are_there() -> None:
    """A file of the repository that a text names in code exists."""
    named = set()
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        named |= set(re.findall(r"`((?:ffwd|adapters|maskbench|tests|docs)/[\w./*-]*)`", text))
    assert named
    assert not [path for path in named if not any(ROOT.glob(path))]


def test_every_option_of_the_benchmark_is_described() -> None:
    """And no other."""
    text = (ROOT / "docs/maskbench.md").read_text(encoding="utf-8")
    table = text.partition("## Options")[2].partition("\n## ")[0]
    described = set(re.findall(r"`(--[a-z-]+)", table))
    options = {name for option in run_command.params for name in option.opts}
    assert described == options


def test_the_corpus_is_as_large_as_described() -> None:
    """The counts in docs/maskbench.md."""
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [test["valid"] for line in lines for test in json.loads(line)["tests"]]
    text = " ".join((ROOT / "docs/maskbench.md").read_text(encoding="utf-8").split())
    claim = f"{len(lines)} schemas with {sum(labels)} valid and {len(labels) - sum(labels)} invalid"
    assert claim in text
