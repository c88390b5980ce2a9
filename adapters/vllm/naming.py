"""The backend's name among those of vLLM's configuration.

vLLM loads this as early as it asks for its platform, while its own modules are still being
imported. So nothing of vLLM is imported here but the configuration of structured outputs, and that
is not imported before vLLM imports it: in vLLM 0.31 it needs what asks for the platform.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, get_args

BACKEND = "ffwd"
CONFIG_MODULE = "vllm.config.structured_outputs"


def when_imported(name: str, act: Callable[[], None]) -> None:
    """Call something as soon as a module has been imported; at once if it is there.

    Args:
        name: The module.
        act: Raises nothing, or the import fails.

    """
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _Watcher(name, act))


class _Watcher:
    """A finder of one module that others find, once."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name = name
        self._act = act

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            self._act()

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]
        return spec


class _Naming:
    """The state of the backend's name.

    Attributes:
        register: Adds the backend; None once that has happened, or failed.
        reason: Why the backend cannot be used; None if it can.

    """

    register: Callable[[], None] | None = None
    reason: str | None = None


def extend_config(reason: str | None = None, *, register: Callable[[], None] | None = None) -> None:
    """Let `StructuredOutputsConfig` take the backend's name; what was decided before stays.

    Args:
        reason: Why it cannot be used with this version of vLLM; the error for who names it.
        register: Adds the backend as soon as it is named, if nothing has added it before. It calls
            this without it.

    """
    import vllm.config.structured_outputs as module
    from pydantic.dataclasses import rebuild_dataclass

    config = module.StructuredOutputsConfig
    names = get_args(module.StructuredOutputsBackend)
    is_named = BACKEND in names
    if is_named and _Naming.register is None:
        return
    _Naming.reason, _Naming.register = reason, register
    if is_named:
        return
    extended: Any = Literal.__getitem__((*names, BACKEND))
    module.StructuredOutputsBackend = extended
    config.__annotations__["backend"] = extended
    config.__dataclass_fields__["backend"].type = extended
    config.__pydantic_fields__["backend"].annotation = extended
    (validator,) = (
        found
        for name, found in config.__pydantic_decorators__.model_validators.items()
        if name == "_validate_structured_output_config"
    )
    validator.func = _validating(validator.func)
    rebuild_dataclass(config, force=True)
    # It contains the other. If it is not there yet, it will be made of what is there now.
    whole = getattr(sys.modules.get("vllm.config.vllm"), "VllmConfig", None)
    if whole is not None:
        rebuild_dataclass(whole, force=True)


def _validating(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def validate(self: Any, *arguments: Any) -> Any:
        if self.backend != BACKEND:
            return original(self, *arguments)
        if _Naming.register is not None:
            _Naming.register()
        if _Naming.reason is not None:
            raise ValueError(_Naming.reason)
        if self.disable_additional_properties:
            raise ValueError(
                "disable_additional_properties is not supported by the ffwd backend: write "
                '"additionalProperties": false into the schemas'
            )
        return self

    return validate
