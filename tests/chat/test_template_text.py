"""The same text as transformers, on 70 real templates; where it refuses, so do we."""

from pathlib import Path

import jinja2
import pytest
import reference
from conversations import CASES
from llamacpp import templates
from versions import needs_new_transformers

from ffwd.chat import ChatError, ChatTemplate, TemplateRefusedError, UndefinedVariableError


def same_kind(expected: Exception, found: ChatError) -> bool:
    """Whether our error says what transformers' does."""
    if type(expected) is jinja2.TemplateError:  # raise_exception
        return isinstance(found, TemplateRefusedError) and str(found) == str(expected)
    if isinstance(expected, jinja2.UndefinedError):
        return isinstance(found, UndefinedVariableError) and found.line is not None
    return not isinstance(found, (TemplateRefusedError, UndefinedVariableError))


@needs_new_transformers
@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_text_is_that_of_transformers(path: Path) -> None:
    """On every conversation, with every option; where it raises an error, so do we."""
    source = path.read_text(encoding="utf-8")
    template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
    rendered = 0
    for case in CASES:
        expected: str | Exception
        try:
            expected = reference.render(source, case.messages, **case.options)
        except Exception as error:
            expected = error
        found: str | ChatError
        try:
            found = template.render_text(case.messages, now=reference.NOW, **case.options)
        except ChatError as error:
            found = error
        if isinstance(expected, Exception):
            assert isinstance(found, ChatError), f"{case}: {found!r} instead of {expected!r}"
            assert same_kind(expected, found), f"{case}: {found!r} instead of {expected!r}"
        else:
            rendered += 1
            assert found == expected, str(case)
    assert rendered > 10


def test_there_are_seventy_templates() -> None:
    """What `make vocabularies` unpacks."""
    assert len(templates()) == 70
