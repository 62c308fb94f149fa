"""Data sets that Minari itself wrote, of environments with every kind of space; read back by Minari itself as well."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

minari: Any = pytest.importorskip("minari", reason="skipped: needs minari (pip install .[test])")


class EveryKind(gymnasium.Env[Any, Any]):
    """Observations of every kind of space, pictures of 32 x 40 among them. Odd episodes are cut, even ones end."""

    observation_space = Dict(
        {
            "image": Box(0, 255, (32, 40, 3), np.uint8),
            "pos": Box(-np.inf, np.inf, (2,), np.float32),
            "deep": Dict({"grid": Box(0, 1, (2, 3), np.float64), "pick": MultiDiscrete([3, 4])}),
            "both": Tuple((Discrete(5, start=2), MultiBinary((2, 3)))),
            "words": Text(8),
        }
    )
    action_space = Tuple((Discrete(3), Box(-1, 1, (2,), np.float32)))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.number, self.steps = seed or 0, 0
        self.observation_space.seed(seed)
        return self._seen()

    def step(self, action: Any) -> Any:
        self.steps += 1
        ended = self.steps > self.number % 4
        observation, info = self._seen()
        return observation, self.steps / 2, ended and self.number % 2 == 0, ended and self.number % 2 == 1, info

    def _seen(self) -> Any:
        inner = {"v": np.full(3, self.steps, np.float64)}
        info = {"at": self.steps, "inner": inner, "said": f"step {self.steps}", "ok": self.steps > 1}
        return self.observation_space.sample(), info


gymnasium.register("EveryKind-v0", entry_point="minari_sets:EveryKind")


@contextmanager
def minari_root(root: Path) -> Iterator[Path]:
    """For as long as it lasts, Minari keeps its data sets there."""
    name, before = "MINARI_DATASETS_PATH", os.environ.get("MINARI_DATASETS_PATH")
    os.environ[name] = str(root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield root
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def record(root: Path, dataset_id: str, data_format: str, episodes: int, *, jpeg: bool = False) -> Path:
    """A data set of `EveryKind`, recorded by Minari; episode e has the seed e and 1 + e % 4 steps."""
    with minari_root(root):
        inner = gymnasium.make("minari_sets:EveryKind-v0", disable_env_checker=True)
        env = minari.DataCollector(inner, data_format=data_format, record_infos=True, jpeg_encoding=jpeg)
        env.action_space.seed(3)
        for episode in range(episodes):
            env.reset(seed=episode, options={"level": {"name": "easy", "size": episode}})
            ended = False
            while not ended:
                _, _, terminated, truncated, _ = env.step(env.action_space.sample())
                ended = terminated or truncated
        env.create_dataset(dataset_id, author="someone", algorithm_name="random", code_permalink="none")
        env.close()
    return root / dataset_id


def by_minari(root: Path, dataset_id: str) -> list[Any]:
    """The episodes as Minari reads them, in order of their ids."""
    with minari_root(root):
        data = minari.load_dataset(dataset_id)
        return [data[i] for i in range(data.total_episodes)]


def part(value: Any, name: str) -> Any:
    """The part of a value that a field `obs.a.0` or `acts.1` is of."""
    for key in name.split(".")[1:]:
        value = value[int(key) if isinstance(value, tuple) else key]
    return value
