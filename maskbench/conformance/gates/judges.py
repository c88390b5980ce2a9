"""The verdict of two validators on a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Context, Decimal, localcontext
from itertools import islice
from typing import Any

import jsonschema
import jsonschema_rs

from maskbench.conformance.gates.dialects import for_python

MAX_DIGITS = 5000
"""Numbers are exact if neither their digits nor their exponent pass this."""

MAX_REFERENCES = 50_000
"""jsonschema follows at most so many for a verdict: branches of recursive schemas multiply."""

# The formats that Python's jsonschema has without further packages.
_FORMATS = ("date", "ipv4", "ipv6", "uuid", "email")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_PRECISE = Context(prec=3 * MAX_DIGITS)


class RepeatedKeyError(ValueError):
    """A text that is JSON, with a key twice in one object."""


class UnjudgeableError(ValueError):
    """A JSON text that the validators cannot judge."""


def parse(text: str, *, exactly: bool = True) -> Any:
    """Parse a JSON text without duplicate keys or NaN; numbers that are no integers are decimals.

    Astronomic numbers are brought nearer unless `exactly`, which makes no difference to bounds.

    Raises `ValueError` if the text is no JSON, `RepeatedKeyError` if a key comes twice, and
    `UnjudgeableError` if a number cannot be had.
    """

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.loads(
        text,
        object_pairs_hook=_unique_keys,
        parse_int=lambda text: _integer(text, exactly),
        parse_float=lambda text: _decimal(text, exactly),
        parse_constant=refuse,
    )


class Judges:
    """Both validators for one schema, with formats asserted as jsonschema-rs has them."""

    def __init__(self, schema: Any) -> None:
        """Compile the schema. Raises `ValueError` if one validator rejects it."""
        text = json.dumps(schema, ensure_ascii=False)
        # Whether numbers may be brought nearer.
        self.exactly = any(f'"{word}"' in text for word in ("multipleOf", "uniqueItems"))
        try:
            self._rust = jsonschema_rs.validator_for(
                text, validate_formats=True, ignore_unknown_formats=True
            )
        except Exception as error:
            raise ValueError(f"jsonschema-rs: {error}") from error
        # Bounds as decimals, because 0.1 as a float is not the 0.1 of the schema's text.
        exact = for_python(json.loads(text, parse_float=Decimal))
        plain = jsonschema.validators.validator_for(exact, jsonschema.Draft202012Validator)
        is_integer = _is_spelled_integer if plain is jsonschema.Draft4Validator else _is_integer
        numbers = plain.TYPE_CHECKER.redefine_many({"number": _is_number, "integer": is_integer})
        # Its stubs do not declare its arguments.
        validators: Any = jsonschema.validators
        words = [word for word in _REFERENCES if word in plain.VALIDATORS]
        keywords = {word: self._counted(plain.VALIDATORS[word]) for word in words}
        exact_type = validators.extend(
            plain, validators={"multipleOf": _multiple_of, **keywords}, type_checker=numbers
        )
        self._left = MAX_REFERENCES
        self._python = exact_type(exact, format_checker=jsonschema.FormatChecker(_FORMATS))

    def _counted(self, keyword: Callable[..., Any]) -> Callable[..., Any]:
        def follow(validator: Any, reference: Any, instance: Any, schema: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise UnjudgeableError(f"more than {MAX_REFERENCES:,} references")
            return keyword(validator, reference, instance, schema)

        return follow

    def verdict(self, instance: Any) -> bool | None:
        """Whether the instance is valid; None if the validators disagree, or one gives up."""
        self._left = MAX_REFERENCES
        try:
            rust = bool(self._rust.is_valid(instance))
            python = bool(self._python.is_valid(instance))
        except Exception:
            # If a validator fails, there is nothing to compare.
            return None
        return rust if rust == python else None

    def refusals(self, instance: Any) -> tuple[list[str], list[str]]:
        """Return why jsonschema-rs, and jsonschema, reject the instance: at most a reason each.

        All reasons of a recursive schema can be too many to be listed, as jsonschema-rs does.

        Raises `UnjudgeableError` after too many references.
        """
        self._left = MAX_REFERENCES
        rust = [] if self._rust.is_valid(instance) else ["jsonschema-rs: rejected"]
        python = [error.message for error in islice(self._python.iter_errors(instance), 1)]
        return rust, [f"jsonschema: {message}" for message in python]

    def refusing_keywords(self, instance: Any) -> list[str]:
        """Return the keywords of the root's schemas for which jsonschema rejects the instance.

        After too many references, those that were found.
        """
        self._left = MAX_REFERENCES
        found = set()
        with suppress(UnjudgeableError):
            for error in self._python.iter_errors(instance):
                # The schema `false` has no keyword.
                found.add(str(error.validator or "false"))
        return sorted(found)


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RepeatedKeyError(f"a key twice among {[key for key, _ in pairs]}")
    return members


def _integer(text: str, exactly: bool) -> int:
    if len(text) <= MAX_DIGITS:
        # `int` itself refuses more digits than a setting of the interpreter allows.
        return int(Decimal(text)) if len(text) > 4000 else int(text)
    if exactly:
        raise UnjudgeableError(f"a number of {len(text)} digits")
    nearer: int = 10**MAX_DIGITS
    return -nearer if text.startswith("-") else nearer


def _decimal(text: str, exactly: bool) -> Decimal:
    mantissa, _, exponent = text.lower().partition("e")
    digits = exponent.lstrip("+-0")
    power = min(int(digits[:9] or 0), 2 * MAX_DIGITS) * (-1 if exponent.startswith("-") else 1)
    if len(mantissa) <= MAX_DIGITS:
        value = Decimal(f"{mantissa}e{power}")
        if not value or abs(value.adjusted()) <= MAX_DIGITS:
            return value
        if not exactly:
            nearer = MAX_DIGITS if value.adjusted() > 0 else -MAX_DIGITS
            return Decimal(f"1e{nearer}").copy_sign(value)
    raise UnjudgeableError(f"the number {text[:80]}")


def _is_number(_: Any, value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_integer(_: Any, value: Any) -> bool:
    return _is_number(_, value) and value == int(value)


def _is_spelled_integer(_: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _multiple_of(validator: Any, divisor: Any, instance: Any, schema: Any) -> Any:
    if not validator.is_type(instance, "number"):
        return
    with localcontext(_PRECISE):
        if Decimal(instance) % Decimal(divisor):
            yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {divisor}")
