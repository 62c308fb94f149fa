"""The videos of `record-video-1.4.tar.xz`: Gymnasium 1.4 wrote them with moviepy 2.2, of three episodes.

`python tests/made/record_videos.py FOLDER` writes such ones where moviepy is installed.
"""

import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Shades(gymnasium.Env[Any, Any]):
    """Episodes of 5, 6 and 7 pictures; red says the step, green the episode."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space, action_space, render_mode = Box(0, 1, (1,)), Discrete(2), "rgb_array"

    def __init__(self) -> None:
        self.episode, self.t = 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        return np.zeros(1, np.float32), 1.0, self.t > self.episode + 2, False, {}

    def render(self) -> Any:
        return np.full((48, 64, 3), (20 * self.t, 40 * self.episode, 100), np.uint8)


def write(folder: str) -> None:
    """Writes the videos."""
    env: Any = gymnasium.wrappers.RecordVideo(Shades(), folder, episode_trigger=lambda episode: True)
    for _ in range(3):
        env.reset()
        while not env.step(0)[2]:
            pass
    env.close()


if __name__ == "__main__":
    write(sys.argv[1])
