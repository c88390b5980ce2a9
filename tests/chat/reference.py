"""transformers' own rendering, at a fixed time."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any
from unittest.mock import patch

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

NOW = datetime(2026, 3, 7, 9, 5, 1)
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class _Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return NOW


@contextmanager
def fixed_time() -> Iterator[None]:
    """While it lasts, transformers' templates take `NOW` for now."""
    with patch.object(chat_template_utils, "datetime", _Clock):
        yield


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """One with a vocabulary of nothing much; only its templates are used."""
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>")), **SPECIAL
    )


def render(source: str, messages: list[dict[str, Any]], **options: Any) -> str:
    """What transformers makes of a conversation."""
    with fixed_time():
        text = tokenizer().apply_chat_template(
            messages, chat_template=source, tokenize=False, **options
        )
    assert isinstance(text, str)
    return text
