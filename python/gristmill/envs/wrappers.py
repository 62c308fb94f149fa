"""What is done to the observations of any environment: channels first, and stacks of the last frames."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

Env = gymnasium.Env[Any, Any]
Observation = npt.NDArray[Any]


def is_picture(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are pictures of uint8: (H, W), or (H, W, C) with 1, 3 or 4 channels."""
    if not (isinstance(space, Box) and space.dtype == np.uint8):
        return False
    return len(space.shape) == 2 or (len(space.shape) == 3 and space.shape[2] in (1, 3, 4))


def channels_first(picture: Observation) -> Observation:
    """(H, W) or (H, W, C) -> (C, H, W)."""
    return np.ascontiguousarray(picture[None] if picture.ndim == 2 else np.moveaxis(picture, -1, 0))


class ChannelsFirst(gymnasium.ObservationWrapper[Observation, Any, Observation]):
    """Pictures (H, W) or (H, W, C) as (C, H, W)."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        self.observation_space = Box(channels_first(space.low), channels_first(space.high), dtype=np.uint8)

    def observation(self, observation: Observation) -> Observation:
        """One picture."""
        return channels_first(observation)


class StackFrames(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """The last `frames` observations one after the other along the first axis, the newest last.

    What an episode has not yet shown is zeros; nothing is left of the episode before. Each result is its own array.
    """

    def __init__(self, env: Env, frames: int) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, Box)
        self.observation_space = stacked_space(space, frames)
        self._stack = np.zeros(self.observation_space.shape, dtype=space.dtype)
        self._size = space.shape[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode: zeros, then its first observation."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._stack = np.zeros_like(self._stack)
        return self._pushed(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; its observation, an episode's last one too, is stacked."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._pushed(observation), reward, terminated, truncated, info

    def _pushed(self, observation: Observation) -> Observation:
        self._stack = np.concatenate([self._stack[self._size :], observation])
        return self._stack.copy()


def stacked_space(space: Box, frames: int) -> Box:
    """The space of `frames` observations along the first axis; the zeros of what is not yet seen are in it."""
    low = np.minimum(space.low, 0) if frames > 1 else space.low
    high = np.maximum(space.high, 0) if frames > 1 else space.high
    return Box(np.concatenate([low] * frames), np.concatenate([high] * frames), dtype=space.dtype.type)
