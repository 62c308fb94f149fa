"""A feed of PyTorch tensors: the loader's memory on the CPU; pinned copies on a stream of their own to a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterableDataset

from gristmill.demos.mixing import MixedLoader
from gristmill.errors import ConfigError
from gristmill.frameworks.ahead import Bring, DeviceFeed
from gristmill.frameworks.tensors import convert
from gristmill.loaders.loader import DataLoader


def feed(
    loader: DataLoader | MixedLoader[Any],
    alias: str = "",
    *,
    device: torch.device | str | int | None = None,
    ahead: int = 2,
) -> DeviceFeed:
    """The batches of a loader as tensors on a device, by name, some of them on their way while a step runs.

        for batch in gm.torch.feed(loader, device="cuda"):
            loss = criterion(model(gm.torch.expand(batch)["planes"]), batch["values"])

    To a GPU a batch goes through pinned memory, which PyTorch keeps and uses again, on a stream of its own; the
    stream of the step waits for it on the device, never this process. On the CPU tensors are the memory of the loader,
    which has it back when they are dropped. Other devices get it by `Tensor.to`.

    Args:
        loader: a `DataLoader`, `PairLoader` or `StepLoader`.
        alias: which output of a `DataLoader`.
        device: where tensors shall be; the current GPU where there is one, else the CPU.
        ahead: how many batches may be on their way.

    Raises:
        TypeError: no loader, or no device.
        ValueError: `ahead` is no such number.
        ConfigError: there is no such output, or no such device here.
    """
    target = _device(device)
    bring: Bring = _here if target.type == "cpu" else _Stream(target) if target.type == "cuda" else _Elsewhere(target)
    return DeviceFeed(loader, alias, ahead, bring)


def _device(given: Any) -> torch.device:
    if given is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if isinstance(given, bool) or not isinstance(given, torch.device | str | int):
        raise TypeError(f"device is {type(given).__name__}; expected a torch.device, its name, or its number")
    try:
        device = torch.device(given)
    except RuntimeError as error:
        raise ConfigError(f"device={given!r}: {error}", field="device") from None
    if device.type == "cuda" and not (device.index or 0) < torch.cuda.device_count():
        here = torch.cuda.device_count()
        raise ConfigError(f"device={given!r}; there are {here} GPUs here that PyTorch can use", field="device")
    return device


def _here(batch: Any) -> Callable[[], dict[str, Any]]:
    found = convert(batch)
    return lambda: found


def _each(value: Any, move: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """A value of a batch with its tensors moved: some are lists of tensors, or of what is none."""
    if isinstance(value, torch.Tensor):
        return move(value)
    return [_each(item, move) for item in value] if isinstance(value, list) else value


class _Elsewhere:
    """To a device of which no more is known."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __call__(self, batch: Any) -> Callable[[], dict[str, Any]]:
        found = {name: _each(value, lambda tensor: tensor.to(self._device)) for name, value in convert(batch).items()}
        return lambda: found


class _Stream:
    """To a GPU, on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def __call__(self, batch: Any) -> Callable[[], dict[str, Any]]:
        def over(tensor: torch.Tensor) -> torch.Tensor:
            # PyTorch gives pinned memory to another use only after the copy on this stream.
            return tensor.pin_memory().to(self._device, non_blocking=True)

        with torch.cuda.stream(self._stream):
            found = {name: _each(value, over) for name, value in convert(batch).items()}
            done = self._stream.record_event()

        def arrive() -> dict[str, Any]:
            stepping = torch.cuda.current_stream(self._device)
            stepping.wait_event(done)

            def used_there(tensor: torch.Tensor) -> torch.Tensor:
                # Its memory belongs to the other stream, which must not have it back before this one is through.
                tensor.record_stream(stepping)
                return tensor

            return {name: _each(value, used_there) for name, value in found.items()}

        return arrive


# PyTorch iterates over what calls itself an iterable data set.
IterableDataset.register(DeviceFeed)
