"""A feed of PyTorch tensors: the loader's memory on the CPU; pinned copies on a stream of their own to a GPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterableDataset

from gristmill.demos.mixing import MixedLoader
from gristmill.errors import ConfigError
from gristmill.frameworks.ahead import Bring, DeviceFeed, pin
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

    To a GPU a batch goes on a stream of its own, straight from the memory of the loader, which is pinned once and used
    again; the stream of the step waits for it on the device. Where the driver does not pin that memory, PyTorch first
    copies the batch to memory that it has pinned. This process waits where the device has more than `ahead + 1` steps
    to do, so that batches do not gather there. On the CPU tensors are the memory of the loader, which has it back
    when they are dropped. Other devices get it by `Tensor.to`.

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
    bring: Bring = _here if target.type == "cpu" else _Elsewhere(target)
    if target.type == "cuda":
        bring = _Stream(target, ahead)
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
    """To a GPU, on a stream of its own, from memory that is pinned."""

    def __init__(self, device: torch.device, ahead: int) -> None:
        self._device, self._ahead = device, ahead
        self._stream = torch.cuda.Stream(device)
        # What is copied now, and what the loader has back once its event has happened.
        self._copied: deque[tuple[torch.cuda.Event, dict[str, Any]]] = deque()
        # Where the stream of the steps stood as each of the last batches was given.
        self._steps: deque[torch.cuda.Event] = deque()

    def __call__(self, batch: Any) -> Callable[[], dict[str, Any]]:
        while self._copied and self._copied[0][0].query():
            self._copied.popleft()
        with torch.cuda.stream(self._stream):
            pin(batch, self._stream.device.index)
            host = convert(batch)
            try:
                found = {name: _each(value, self._over) for name, value in host.items()}
            finally:
                # Where one array cannot be brought over, the device may read others still.
                done = self._stream.record_event()
                self._copied.append((done, host))

        def arrive() -> dict[str, Any]:
            stepping = torch.cuda.current_stream(self._device)
            self._hold_back(stepping)
            stepping.wait_event(done)

            def used_there(tensor: torch.Tensor) -> torch.Tensor:
                # Its memory belongs to the other stream, which must not have it back before this one is through.
                tensor.record_stream(stepping)
                return tensor

            return {name: _each(value, used_there) for name, value in found.items()}

        return arrive

    def _over(self, tensor: torch.Tensor) -> torch.Tensor:
        # PyTorch gives memory that it pinned itself to another use only after the copy on this stream.
        pinned = tensor if tensor.is_pinned() else tensor.pin_memory()
        return pinned.to(self._device, non_blocking=True)

    def _hold_back(self, stepping: torch.cuda.Stream) -> None:
        """Waits until the device has at most `ahead + 1` steps to do, each of which has a batch."""
        self._steps.append(stepping.record_event(torch.cuda.Event(blocking=True)))
        if len(self._steps) > self._ahead + 1:
            self._steps.popleft().synchronize()

    def __del__(self) -> None:
        # The device still reads what is copied; copies end in their order.
        if getattr(self, "_copied", None):
            self._copied[-1][0].synchronize()


# PyTorch iterates over what calls itself an iterable data set.
IterableDataset.register(DeviceFeed)
