"""Sums of counts that are dataclasses, field by field."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

Count = TypeVar("Count")


def added(one: Count, other: Count, but: frozenset[str] = frozenset()) -> Count:
    """Return the sum of two: numbers, counters and lists; the first's fields `but` stay."""
    values: dict[str, Any] = {
        field.name: getattr(one, field.name)
        if field.name in but
        else getattr(one, field.name) + getattr(other, field.name)
        for field in fields(one)  # type: ignore[arg-type]
    }
    return type(one)(**values)
