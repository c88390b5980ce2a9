"""An accelerator on a machine without one: tensors that count how often the host waits for them.

Its tensors are in the processor's memory and say that they are elsewhere. All functions of torch
that Python calls pass through `Accelerator`, which finds those that bring a value to the host.
"""

import sys
from collections import Counter
from copy import deepcopy

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# transformers asks it for no autocast.
DEVICE = torch.device("mps")
_TO_HOST = {
    torch.Tensor.item,
    torch.Tensor.tolist,
    torch.Tensor.cpu,
    torch.Tensor.numpy,
    torch.Tensor.__bool__,
    torch.Tensor.__int__,
    torch.Tensor.__float__,
    torch.Tensor.__index__,
    torch.Tensor.nonzero,
    torch.nonzero,
    torch.equal,
    torch.masked_select,
    torch.unique,
}


class OnDevice(torch.Tensor):
    """A tensor that says that it is on the accelerator."""

    device = property(lambda self: DEVICE)  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]


class _Hidden(TorchDispatchMode):
    """Counts what torch's own code asks of a tensor: `multinomial`, for one."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


class Accelerator(TorchFunctionMode):
    """Counts, while it is entered, what waits for the accelerator, by function."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", str(func))
        on_device = any(isinstance(each, OnDevice) for each in _tensors((args, kwargs)))
        if func is torch.Tensor.to or func is torch.Tensor.cpu or func is torch.tensor:
            return self._moved(func, name, args, kwargs, on_device)
        created = kwargs.get("device") is not None and torch.device(kwargs["device"]) == DEVICE
        if created:
            kwargs["device"] = torch.device("cpu")
        with _Hidden() as hidden:
            result = func(*_plain(args), **_plain(kwargs))
        if on_device and (func in _TO_HOST or hidden.count or _indexes_by_host(func, args)):
            self.waits[name] += 1
            if func in _TO_HOST and name not in ("nonzero", "unique", "masked_select"):
                return result
        if name == "__get__" or not (created or on_device):
            return result
        return _placed(result)

    def _moved(self, func, name, args, kwargs, on_device):
        given = [*args[1:], *kwargs.values()]
        device = next((torch.device(g) for g in given if isinstance(g, (str, torch.device))), None)
        if func is torch.Tensor.cpu:
            device = torch.device("cpu")
        target = DEVICE if device is None and on_device else device
        elsewhere = lambda g: torch.device("cpu") if isinstance(g, (str, torch.device)) else g  # noqa: E731
        args = tuple(_plain(a) if isinstance(a, torch.Tensor) else elsewhere(a) for a in args)
        kwargs = {key: elsewhere(_plain(value)) for key, value in kwargs.items()}
        result = func(*args, **kwargs)
        if func is torch.tensor or (target == DEVICE) != on_device:
            # A copy that `to_device` makes waits for nothing on CUDA.
            if target == DEVICE and not _called_by("to_device"):
                self.waits[f"{name} to the device"] += 1
            elif on_device:
                self.waits[name] += 1
        return (
            result.as_subclass(OnDevice) if target == DEVICE else result.as_subclass(torch.Tensor)
        )


def on_device(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the accelerator."""
    return tensor.clone().as_subclass(OnDevice)


def placed(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a model on the accelerator."""
    model = deepcopy(model).to("cpu")
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            module._buffers[name] = on_device(buffer)
        for name, parameter in module.named_parameters(recurse=False):
            module._parameters[name] = torch.nn.Parameter(on_device(parameter.detach()))
    return model


def _indexes_by_host(func, args) -> bool:
    """Whether an index is in the host's memory, or a mask whose hits must be counted."""
    if func not in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
        return False
    parts = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(
        isinstance(part, list)
        or (isinstance(part, torch.Tensor) and part.dim() > 0 and (
            not isinstance(part, OnDevice) or part.dtype == torch.bool))
        for part in parts
    )  # fmt: skip


def _called_by(name: str) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == name:
            return True
        frame = frame.f_back
    return False


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.as_subclass(torch.Tensor) if isinstance(value, OnDevice) else value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_plain(each) for each in value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _placed(value):
    if isinstance(value, torch.Tensor):
        return value.as_subclass(OnDevice)
    if isinstance(value, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in value):
        made = [_placed(each) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value
