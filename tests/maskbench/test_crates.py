"""The picture of the crates in the architecture page."""

import pytest

from maskbench.tools import crates


def test_the_page_shows_the_crates_of_today() -> None:
    """As `cargo metadata` has them; `python -m maskbench tools crates` draws it anew."""
    page = crates.PAGE.read_text(encoding="utf-8")
    assert page == crates.with_picture(page, crates.picture(crates.dependencies()))


def test_crates_come_after_those_they_use() -> None:
    drawn = crates.picture({"top": {"left", "base"}, "base": set(), "left": {"base"}})
    assert drawn == "base  1\nleft  ●  2\n top  ●  ●  3"


def test_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\['a', 'b'\]"):
        crates.picture({"a": {"b"}, "b": {"a"}, "c": set()})


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="has no"):
        crates.with_picture("# A page\n", "")
