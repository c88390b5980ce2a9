"""Fetching the public data set, from a repository on this machine instead."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.data import parse_case, read_sources

CASE = {
    "description": "x",
    "meta": {},
    "schema": {"type": "null"},
    "tests": [{"valid": True, "data": None}],
}


def git(*arguments):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *map(str, arguments)],
        check=True, capture_output=True,
    )  # fmt: skip


def bare_repository(folder, names):
    """A repository with a commit for each of some files."""
    git("init", "--quiet", folder / "work")
    for name in names:
        file = folder / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(CASE), encoding="utf-8")
        git("-C", folder / "work", "add", ".")
        git("-C", folder / "work", "commit", "--quiet", "-m", name)
    git("clone", "--quiet", "--bare", folder / "work", folder / "public.git")
    return folder / "public.git"


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The layout of the public one."""
    names = [f"maskbench/data/Github_easy---o{number}.json" for number in (1, 2)]
    return bare_repository(tmp_path_factory.mktemp("public"), names)


def fetch(*arguments):
    return CliRunner().invoke(main, ["tools", "fetch", *map(str, arguments)])


def test_the_data_set_is_cloned_and_can_be_read(repository, tmp_path):
    result = fetch(tmp_path / "set", "--url", repository.as_uri())
    assert result.exit_code == 0, result.output
    data = tmp_path / "set" / "maskbench" / "data"
    assert f"--data {data}" in result.output
    assert "2 schemas, commit " in result.output
    assert [parse_case(source).id for source in read_sources(data)] == [
        "Github_easy---o1", "Github_easy---o2",
    ]  # fmt: skip
    log = subprocess.run(
        ["git", "-C", str(tmp_path / "set"), "log", "--oneline"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(log.stdout.splitlines()) == 1, "only the newest state"


def test_without_a_network_it_says_what_to_do(tmp_path):
    # Nothing listens on port 1 of this machine.
    result = fetch(tmp_path / "set", "--url", "http://127.0.0.1:1/public.git")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    for text in ("127.0.0.1", "copy its folder maskbench/data", "--url", "leave out --data"):
        assert text in result.output
    assert not (tmp_path / "set").exists()


def test_a_folder_that_is_there_is_left_alone(repository, tmp_path):
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    result = fetch(tmp_path, "--url", repository.as_uri())
    assert result.exit_code == 1
    assert "choose another folder" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_another_repository_is_not_taken_for_the_data_set(tmp_path):
    other = bare_repository(tmp_path, ["README.json"])
    result = fetch(tmp_path / "set", "--url", other.as_uri())
    assert result.exit_code == 1
    assert "has no folder maskbench/data" in result.output


def test_without_git_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = fetch(tmp_path / "set")
    assert result.exit_code == 1
    assert "git was not found" in result.output
