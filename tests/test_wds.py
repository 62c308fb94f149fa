"""Data sets of processed shards by configuration: folders, merging, limits, and what cannot be mixed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.envs import EnvConfig
from gristmill.safe_pickle import Instance


def box(high: int, size: int = 2) -> Instance:
    low = np.zeros((1, size, size), np.uint8)
    return Instance("Box", (), {"low": low, "high": low + high, "shape": (1, size, size), "dtype": np.dtype("u1")})


def store(
    root: Path,
    kind: str,
    benchmark: str,
    task: str,
    lengths: list[int],
    n: int = 3,
    high: int = 255,
    swapped: bool = False,
) -> None:
    order = (task, benchmark) if swapped else (benchmark, task)
    meta = get_meta_dict(
        EnvConfig(benchmark_name=benchmark, task_name=task), box(high), Instance("Discrete", (), {"n": n})
    )
    rows = [
        {"obs": np.full((1, 2, 2), t, np.uint8), "acts": np.int64(t), "dones": np.bool_(t == length - 1)}
        for length in lengths
        for t in range(length)
    ]
    write_frames(root.joinpath("data", "processed", kind, *order, "demos.tar.zst"), meta, rows)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store(tmp_path, "demos", "dm_control", "finger-spin", [3, 4, 5])
    store(tmp_path, "random", "dm_control", "finger-spin", [10])
    store(tmp_path, "demos", "dm_control", "cheetah-run", [2, 2], swapped=True)
    return tmp_path


def sizes(found: Any) -> list[list[int]]:
    return [part.lengths for part in found.datasets]


def test_configurations_are_merged_over_the_current_one(root: Path) -> None:
    configs: list[dict[str, Any]] = [{}, {"type": "random"}, {"env_cfg": {"task_name": "cheetah-run"}}]
    found = gm.load_wds_datasets(configs, root=root)
    assert sizes(found) == [[3, 4, 5], [10], [2, 2]]
    assert set(found.metadata) == {"color_space", "observation_space", "action_space"}
    assert found.metadata["action_space"].state == {"n": 3}
    assert found.datasets[2].config["env_cfg"]["task_name"] == "cheetah-run"
    assert found.datasets[0][1]["acts"].tolist() == [0, 1, 2, 3]
    other = gm.load_wds_datasets([{}], env_cfg={"task_name": "cheetah-run"}, env_data={"data_root": str(root)})
    assert sizes(other) == [[2, 2]]


def test_limits_are_exact_and_checked_at_once(root: Path) -> None:
    def limited(**limits: int) -> Any:
        return gm.load_wds_datasets([{"env_data": limits}, {"type": "random"}], root=root)

    assert sizes(limited(wds_n_trajs=2)) == [[3, 4], [10]]
    assert sizes(limited(wds_n_trans=5)) == [[3, 2], [10]]
    assert sizes(limited(wds_n_trans=12)) == [[3, 4, 5], [10]]
    part = limited(wds_n_trans=5).datasets[0]
    assert (part.num_frames, part.column("acts").tolist()) == (5, [0, 1, 2, 0, 1])
    assert part[-1]["acts"].tolist() == [0, 1]
    for limits, words in [
        ({"wds_n_trajs": 4}, "3 trajectories"),
        ({"wds_n_trans": 13}, "there are 12"),
        ({"wds_n_trajs": 0}, "wds_n_trajs=0"),
        ({"wds_n_trans": 0}, "wds_n_trans=0"),
        ({"wds_n_trajs": 1, "wds_n_trans": 1}, "choose one"),
    ]:
        with pytest.raises(gm.ConfigError, match=words):
            limited(**limits)


def test_what_is_wrong_with_a_configuration_is_said(root: Path) -> None:
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([], "no configuration"),
        ([{"env_cfg": {"task": "cheetah-run"}}], "task_name"),
        ([{"env_cgf": {}}], "did you mean `env_cfg`"),
        ([{}, {"kind": "random"}], r"configs\[1\]"),
        ([{"type": "../demos"}], "name of a folder"),
        ([{"env_cfg": {"task_name": "walker-walk"}}], "no shards in .*walker-walk.* nor in"),
    ]
    for configs, words in cases:
        with pytest.raises(gm.ConfigError, match=words):
            gm.load_wds_datasets(configs, root=root)


def test_data_that_cannot_be_mixed_is_refused_with_both_values(root: Path) -> None:
    store(root, "other", "dm_control", "finger-spin", [2], n=4)
    with pytest.raises(gm.FormatError, match=r"Discrete\(3\) and Discrete\(4\)"):
        gm.load_wds_datasets([{}, {"type": "other"}], root=root)
    store(root, "bright", "dm_control", "finger-spin", [2], high=7)
    with pytest.raises(gm.FormatError, match="observation spaces differ"):
        gm.load_wds_datasets([{}, {"type": "bright"}], root=root)
    store(root, "demos", "atari", "Pong", [2])
    with pytest.raises(gm.FormatError, match="RGB and GRAY"):
        gm.load_wds_datasets([{}, {"env_cfg": {"benchmark_name": "atari", "task_name": "Pong"}}], root=root)
