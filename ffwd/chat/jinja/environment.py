"""The environment that chat templates are written for: transformers', bounded and tracked."""

import re
import types
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, partial, update_wrapper
from importlib.metadata import version
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
import jinja2.utils
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter

from ffwd.chat.errors import TemplateLimitError
from ffwd.chat.jinja import counting, formatting, tracked
from ffwd.chat.jinja.bounds import (
    check_binary_method,
    check_codec,
    check_format,
    check_pieces,
    check_replacement,
    check_sizes,
    check_tabs,
)
from ffwd.chat.jinja.filters import all_filters, all_tests, join, modulo, replace
from ffwd.chat.jinja.run import check_integer, current


class RaisedByTemplateError(jinja2.TemplateError):
    """`raise_exception` was called."""


class NamedUndefinedError(jinja2.UndefinedError):
    """Jinja's class, with the name of the variable."""

    def __init__(self, name: str | None, message: str | None = None) -> None:
        super().__init__(message)
        self.name = name


class _Undefined(jinja2.Undefined):
    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = jinja2.utils.missing,
        name: str | None = None,
        exc: type[jinja2.TemplateRuntimeError] = jinja2.UndefinedError,
    ) -> None:
        super().__init__(hint, obj, name, exc)
        if exc is jinja2.UndefinedError:
            named: Any = partial(NamedUndefinedError, None if name is None else str(name))
            self._undefined_exception = named


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks the assistant's text, for training."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        block = jinja2.nodes.CallBlock(self.call_method("_mark"), [], [], body)
        block.set_lineno(line)
        return block

    def _mark(self, caller: Callable[[], str]) -> str:
        text = caller()
        run = current()
        start = sum(map(len, run.blocks))
        run.generation_spans.append((start, start + len(text)))
        return text


class _Dict:
    """`dict(...)` in a template, which must not reach the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _Namespace(jinja2.utils.Namespace):
    """Refuses names that begin with an underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        values = dict(*args, **kwargs)
        for name in values:
            _check_name(name)
        jinja2.utils.Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    def __repr__(self) -> str:
        # Its values may be namespaces again, each written at every occurrence.
        text: str = current().made(jinja2.utils.Namespace.__repr__(self))
        return text


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(
            f"names that begin with an underscore, such as {name!r}, cannot be kept in a namespace"
        )


class _Template(jinja2.Template):
    escapes: bool
    """Whether it turns on escaping for HTML, in which text is not tracked."""

    @classmethod
    def _from_namespace(cls, environment: Any, namespace: Any, globals: Any) -> "_Template":
        # The function to which the operator `~` compiles.
        namespace["str_join"] = _str_join
        made: _Template = super()._from_namespace(environment, namespace, globals)  # type: ignore[assignment]
        return made


def _str_join(values: Iterable[Any]) -> Any:
    return _concat(formatting.to_string(value) for value in values)


def _concat(values: Iterable[str]) -> Any:
    values = list(values)
    run = current()
    run.check_length(sum(map(len, values)))
    return run.made(tracked.concat(values))


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment as transformers makes it.

    Operators, calls, filters and output go through methods of this class, which count work and
    track text that is not the template's.
    """

    template_class = _Template
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    concat = staticmethod(_concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, jinja2.ext.loopcontrols],
            undefined=_Undefined,
            finalize=_finalize,
        )
        self.filters.update(all_filters())
        self.tests.update(all_tests(self.tests))
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = _strftime_now
        self.globals["dict"] = _Dict()
        self.globals["namespace"] = _Namespace

    def compiled(self, source: str) -> jinja2.Template:
        """Return the template, instrumented to count its operations."""
        tree = counting.count(self.parse(source), self)
        template = self.from_string(tree)
        assert isinstance(template, _Template)
        template.escapes = tree.find(jinja2.nodes.EvalContextModifier) is not None
        return template

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`; filters call it for each of many."""
        current().spend()
        return super().getitem(obj, argument)

    def count(self) -> bool:
        """Count a round of a loop."""
        current().spend()
        return True

    def passed(self, value: Any) -> Any:
        """Count a comparison, and return its value unchanged."""
        return value

    def made(self, value: Any) -> Any:
        """Return a list, tuple or dict that the template writes, after counting it."""
        return current().made(value)

    def sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """Return `value[start:stop:step]`."""
        return current().made(value[start:stop:step])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator, bounded and tracked."""
        run = current()
        if operator == "+":
            if hasattr(left, "__len__") and hasattr(right, "__len__"):
                run.check_length(len(left) + len(right))
            if isinstance(left, tracked.Tracked) or isinstance(right, tracked.Tracked):
                return run.made(tracked.add(left, right))
            return run.made(left + right)
        if operator == "*":
            for value, times in ((left, right), (right, left)):
                if isinstance(value, (str, bytes, list, tuple)) and isinstance(times, int):
                    run.check_length(len(value) * times)
        if operator == "%" and isinstance(left, str):
            check_format(left, right, by="%")
            return run.made(modulo(left, right))
        for value in (left, right):
            if isinstance(value, int):
                check_integer(value)
        if operator == "**":
            integers = isinstance(left, int) and isinstance(right, int)
            if integers and left.bit_length() * right > 1 << 16:
                raise TemplateLimitError("the template computes a power of more than 65,536 bits")
            return left**right
        return run.made(self.binop_table[operator](left, right))

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Make a call, bounded; methods of strings are tracked."""
        run = current()
        run.spend(1 + len(args))
        owner = getattr(function, "__self__", None)
        if owner is self:
            return function(*args)
        name = getattr(function, "__name__", "")
        check_sizes(name, args, kwargs)
        if isinstance(owner, bytes):
            check_binary_method(name)
        if isinstance(owner, str) and self.is_safe_callable(function):
            # The arguments that compiled templates add for functions with the context.
            given = {
                key: v for key, v in kwargs.items() if key not in ("_loop_vars", "_block_vars")
            }
            return run.made(_string_method(owner, name, function, args, given))
        return run.made(super().call(context, function, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Wrap `text.format` and `text.format_map`: sandboxed, bounded and tracked."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        template: str = value.__self__
        is_map = value.__name__ == "format_map"
        formatter = SandboxedFormatter(self)

        def call(*args: Any, **kwargs: Any) -> Any:
            check_format(template, (args, kwargs), by="{")
            if not tracked.may_track([template, list(args), kwargs]):
                return wrapped(*args, **kwargs)
            result = wrapped(*tracked.plain(args), **tracked.plain(kwargs))
            values = args[0] if is_map else kwargs
            given = () if is_map else args
            return formatting.formatted(
                template, result, lambda name: formatter.get_field(name, given, values)[0]
            )

        return update_wrapper(call, value)


def _string_method(
    owner: str, name: str, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if name in ("split", "rsplit", "splitlines"):
        check_pieces(owner, name, args, kwargs)
    elif name in ("encode", "decode"):
        check_codec(args, kwargs)
    elif name == "expandtabs":
        check_tabs(owner, args, kwargs)
    elif name == "replace" and len(args) >= 2 and all(isinstance(v, str) for v in args[:2]):
        check_replacement(owner, args[0], args[1])
    elif name == "join" and len(args) == 1 and not isinstance(args[0], str):
        args = (list(args[0]),)
        lengths = [len(item) for item in args[0] if isinstance(item, str)]
        current().check_length(sum(lengths) + len(owner) * len(lengths))
    elif name == "translate":
        # Its table contains numbers, which may be a caller's characters.
        most = max([1, *(len(v) for v in (args or ({},))[0].values() if isinstance(v, str))])
        current().check_length(len(owner) * most)
        return tracked.fuzzy(method(*tracked.plain(args)))
    if isinstance(owner, tracked.Tracked) or not tracked.may_track([list(args), kwargs]):
        return method(*args, **kwargs)
    if name == "join" and len(args) == 1:
        return join(owner, list(args[0]))
    if name == "replace" and len(args) >= 2 and not kwargs:
        return replace(owner, tracked.raw(args[0]), *args[1:])
    result = method(*tracked.plain(args), **tracked.plain(kwargs))
    if name in _STRETCHES:
        # The selected part of the template's text may depend on the caller's text, but its origin
        # does not.
        return result
    return tracked.fuzzy(result)


_STRETCHES = frozenset(
    {"strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "split", "rsplit", "partition"}
    | {"rpartition", "splitlines", "startswith", "endswith", "find", "rfind", "index", "rindex"}
    | {"count"}
)


def _finalize(value: Any) -> Any:
    """Return the output of a value; the compiled template calls `str` on it."""
    if isinstance(value, str):
        return current().made(value)
    return formatting.to_string(value) if tracked.may_track(value) else value


def _raise_exception(message: Any) -> NoReturn:
    raise RaisedByTemplateError(str(tracked.plain(message)))


_MOST_OF_A_DATE = 1000


def _strftime_now(format: str) -> str:
    if len(format) > _MOST_OF_A_DATE:
        raise TemplateLimitError(f"strftime_now is called with {len(format)} characters")
    check_format(format, (), by="%")
    return (current().now or datetime.now()).strftime(format)


@cache
def environment() -> ChatEnvironment:
    """Return the shared, immutable environment; a rendering's state is in its `Run`.

    Raises `ImportError` for a Jinja2 whose sandbox has known escapes.
    """
    found = version("jinja2")
    if tuple(int(part) for part in re.findall(r"\d+", found)[:3]) < (3, 1, 6):
        raise ImportError(f"chat templates need Jinja2 3.1.6 or later, not {found}", name="jinja2")
    return ChatEnvironment()


def template_line(error: BaseException) -> int | None:
    """Return the line of the template that raised an error."""
    line = None
    trace: types.TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
