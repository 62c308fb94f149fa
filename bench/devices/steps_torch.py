"""Steps of PyTorch on the first GPU, or on the CPU where there is none."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import gristmill as gm
import gristmill.torch
from gristmill.frameworks.ahead import DeviceFeed

BLOCKS, FILTERS = 10, 128


class Steps:
    """Steps of PyTorch on the first GPU, or on the CPU."""

    def __init__(self) -> None:
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.name = torch.cuda.get_device_name() if self.device == "cuda" else "CPU"

    def feed(self, loader: gm.DataLoader) -> DeviceFeed:
        """The feed of a loader to the device."""
        return gristmill.torch.feed(loader, device=self.device, ahead=2)

    def wait(self) -> None:
        """Waits until the device has done all steps."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def sum(self) -> Callable[[Any], None]:
        """A step that makes a batch whole and adds it up."""
        total = torch.zeros((), device=self.device)

        @torch.compile
        def added(total: Any, batch: Any) -> Any:
            whole = gristmill.torch.expand(batch, planes="bf16")
            return total + whole["planes"].float().sum() + whole["probs"].sum() + whole["values"].sum()

        def step(batch: Any) -> None:
            total.copy_(added(total, batch))

        return step

    def net(self) -> Callable[[Any], None]:
        """A step that trains the network."""

        def conv(channels: int) -> Any:
            return nn.Conv2d(channels, FILTERS, 3, padding=1)

        blocks = [nn.Sequential(conv(FILTERS), nn.ReLU(), conv(FILTERS)) for _ in range(BLOCKS)]
        heads = {"policy": nn.Linear(FILTERS * 64, 1858), "value": nn.Linear(FILTERS * 64, 3)}
        net = nn.ModuleDict({"first": conv(112), "tower": nn.ModuleList(blocks), **heads})
        net.to(self.device, memory_format=torch.channels_last)
        update = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)

        def loss(whole: Any) -> Any:
            found = net["first"](whole["planes"].to(memory_format=torch.channels_last)).relu()
            for block in net["tower"]:
                found = (found + block(found)).relu()
            found = found.flatten(1)
            policy = net["policy"](found).float().log_softmax(1)
            value = net["value"](found).float().log_softmax(1)
            return -(whole["probs"].clamp(min=0) * policy).sum(1).mean() - (whole["values"][:, 0] * value).sum(1).mean()

        def step(batch: Any) -> None:
            with torch.autocast(self.device, torch.bfloat16):
                found = loss(gristmill.torch.expand(batch, planes="bf16"))
            update.zero_grad(set_to_none=True)
            found.backward()
            update.step()

        return step
