"""What a recording holds, and that what is drawn of it is inert."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from recordings import CONTROL, END, NASTY, generated, grammar, hostile, vocabulary

import ffwd
from ffwd.view import Recorder, replay


def test_a_text_is_replayed_as_its_matcher_sees_it() -> None:
    """Forced where the matcher forces, and masks as `allowed_token_ids` has them."""
    compiled = grammar()
    text = b'{"name":"Al","tall":false}'
    recording = replay(compiled, text)
    assert recording.text == text
    assert recording.replayed
    assert recording.refusal is None
    matcher = compiled.matcher()
    for step in recording.steps:
        if step.kind == "forced":
            assert matcher.fast_forward_tokens()[0] == step.token
            assert step.allowed is None
        else:
            allowed = matcher.allowed_token_ids()
            assert step.allowed is not None
            assert step.allowed.count == len(allowed)
            assert set(step.allowed.tokens) <= set(allowed)
            assert step.allowed.complete == (step.allowed.tokens == tuple(allowed))
            tokens = map(compiled.vocabulary.token_bytes, allowed)
            assert set(step.allowed.first_bytes) == {t[0] for t in tokens if t}
            assert step.time.mask > 0
        assert matcher.accept_token(step.token)
    assert recording.counts == {"forced": 6, "sampled": 4}


def test_without_forcing_every_token_has_a_mask() -> None:
    recording = replay(grammar(), b'{"name":"Al","tall":false}', forced=False)
    assert recording.counts == {"sampled": len(recording.steps)}
    assert all(step.allowed for step in recording.steps)


def test_a_refused_text_says_where_and_why() -> None:
    recording = replay(grammar(), '{"name":3}')
    assert recording.text + recording.refused == b'{"name":3}'
    assert recording.refused == b"3}"
    assert recording.refusal is not None
    assert "a string [schema #/properties/name]" in recording.refusal
    # After the end nothing may come.
    assert replay(grammar(), [END]).steps == ()


def test_what_was_taken_back_is_healed() -> None:
    recording = generated()
    kinds = [step.kind for step in recording.steps]
    assert kinds[:3] == ["healed", "healed", "forced"]
    assert recording.counts == {"healed": 2, "forced": 6, "sampled": 4 + 1}
    assert recording.steps[0].asked
    assert recording.time.model == 3_000_000 * (2 + 4 + 1)


def test_scores_belong_to_one_token() -> None:
    recording = generated()
    asked = [step for step in recording.steps if step.asked]
    assert all(step.candidates[0].token == step.token for step in asked)
    assert all(step.preferred is not None and step.preferred.token == END for step in asked)
    assert all(not step.candidates for step in recording.steps if not step.asked)


def test_masks_of_any_shape_of_row_are_read_at_once() -> None:
    """uint32 as well, and what is written into the row later does not matter."""
    words = vocabulary()
    recorder = Recorder(words)
    row = np.zeros((words.vocab_size + 31) // 32, dtype=np.uint32)
    row[0] = 1 << 5
    row[-1] = 0xFFFF_FFFF
    recorder.masked(row)
    row[:] = 0
    recorder.sampled(5)
    (step,) = recorder.recording().steps
    assert step.allowed is not None
    # Bits past the vocabulary are none of its tokens.
    assert step.allowed.tokens == (5, *range(words.vocab_size // 32 * 32, words.vocab_size))


def test_large_masks_are_sampled_from_all_over() -> None:
    recording = replay(grammar(), b'{"name":"Al"', forced=False)
    (mask,) = {step.allowed for step in recording.steps if step.text == b"A"}
    assert mask is not None
    assert mask.count > len(mask.tokens) == 60
    assert not mask.complete
    assert mask.tokens[0] < 40
    assert mask.tokens[-1] > 230


class Elements(HTMLParser):
    """The elements of a page, and what stands in its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script":
            self.scripts[-1] += data


def test_hostile_tokens_titles_and_names_are_text() -> None:
    page = hostile().html()
    elements = Elements()
    elements.feed(page)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert NASTY not in page
    assert CONTROL not in page
    data = json.loads(elements.scripts[0])
    assert data["title"] == NASTY
    assert [NASTY, "text"] in [step["s"] for step in data["steps"]]
    assert data["steps"][-1]["s"] == [CONTROL, "control"]


def test_the_page_fetches_nothing() -> None:
    page = generated().html()
    # Data is no code, and the namespace of SVG is a name that is not fetched.
    code = re.sub(r'(?s)<script type="application/json".*?</script>', "", page)
    rest = code.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(|\bsrc=|<link|fetch\(|import\(", rest)
    assert "default-src 'none'" in page


def test_notebooks_get_a_frame_of_its_own() -> None:
    recording = hostile()
    shown = recording._repr_html_()
    elements = Elements()
    elements.feed(shown)
    ((tag, attributes),) = elements.found
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"] == recording.html()


def test_pieces_of_characters_and_an_empty_text_can_be_drawn(tmp_path) -> None:
    recording = replay(grammar({"type": "string"}), '"\u00e9"', forced=False)
    assert json.dumps("\\xc3")[1:-1] in recording.save(tmp_path / "a.html").read_text("utf-8")
    assert replay(grammar(), "").html().startswith("<!doctype html>")
    assert "no tokens" in repr(replay(grammar(), ""))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ffwd.TokenError):
        replay(grammar(), [END + 1])
    with pytest.raises(ffwd.TextError, match="character at index 1 "):
        replay(grammar(), "a\ud800")
    with pytest.raises(OSError, match="nowhere"):
        replay(grammar(), "").save("/nowhere/at/all.html")
