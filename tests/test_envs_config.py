"""The groups `env_cfg` and `venv_opts`: documented keys and defaults, strict reading, recursive update."""

import subprocess
import sys
from typing import Any

import pytest

import gristmill as gm
from gristmill.envs import EnvConfig, VenvOptions


def test_keys_and_defaults_are_the_documented_ones() -> None:
    assert EnvConfig().to_dict() == {
        "benchmark_name": "dm_control",
        "task_name": "finger-spin",
        "magical_preproc": "LoResCHW4E",
        "magical_remove_null_actions": False,
        "dm_control_frame_stack": 3,
        "dm_control_full_env_names": {
            "finger-spin": "DMC-Finger-Spin-v0",
            "cheetah-run": "DMC-Cheetah-Run-v0",
            "walker-walk": "DMC-Walker-Walk-v0",
            "cartpole-swingup": "DMC-Cartpole-Swingup-v0",
            "reacher-easy": "DMC-Reacher-Easy-v0",
            "ball-in-cup-catch": "DMC-Ball-In-Cup-Catch-v0",
        },
        "minecraft_max_env_steps": None,
        "procgen_frame_stack": 4,
        "gymnasium_frame_stack": 1,
        "gymnasium_kwargs": {},
    }
    assert VenvOptions().to_dict() == {"venv_parallel": True, "n_envs": 2}


def test_mappings_merge_key_by_key_and_the_rest_is_replaced() -> None:
    first = EnvConfig.from_dict({"task_name": "cheetah-run", "gymnasium_kwargs": {"a": {"x": 1}, "b": 2}})
    second = first.updated(
        {"dm_control_full_env_names": {"hopper-hop": "DMC-Hopper-Hop-v0"}, "gymnasium_kwargs": {"a": {"y": 3}}}
    )
    assert second.task_name == "cheetah-run"
    assert list(second.dm_control_full_env_names)[-2:] == ["ball-in-cup-catch", "hopper-hop"]
    assert second.gymnasium_kwargs == {"a": {"x": 1, "y": 3}, "b": 2}
    assert first.gymnasium_kwargs == {"a": {"x": 1}, "b": 2}
    assert "hopper-hop" not in EnvConfig().dm_control_full_env_names


def test_groups_are_tables_of_one_toml_text() -> None:
    text = '[env_cfg]\nbenchmark_name = "atari"\ntask_name = "PongNoFrameskip-v4"\n[venv_opts]\nn_envs = 8\n'
    assert EnvConfig.from_toml(text) == EnvConfig(benchmark_name="atari", task_name="PongNoFrameskip-v4")
    assert VenvOptions.from_toml(text) == VenvOptions(n_envs=8)
    assert VenvOptions.from_toml("") == VenvOptions()
    with pytest.raises(gm.ConfigError, match="no TOML: Invalid value"):
        EnvConfig.from_toml("env_cfg = ")
    with pytest.raises(gm.ConfigError, match="expected a table"):
        EnvConfig.from_toml("env_cfg = 3")


def test_the_doc_string_in_the_metadata_of_shards_is_no_option() -> None:
    assert EnvConfig.from_dict({"__doc__": "Settings.", "task_name": "walker-walk"}).task_name == "walker-walk"


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"task": "cheetah-run"}, "task", "did you mean `task_name`"),
        ({"bench": "atari"}, "bench", "did you mean `benchmark_name`"),
        ({"atari_env_id": "PongNoFrameskip-v4"}, "atari_env_id", "called `task_name` now"),
        ({"zz": 1}, "zz", "there are: benchmark_name, task_name"),
        ({"benchmark_name": "attari"}, "benchmark_name", "did you mean `atari`"),
        ({"task_name": ""}, "task_name", "got none"),
        ({"task_name": 3}, "task_name", r"expected str, got 3 \(int\)"),
        ({"procgen_frame_stack": 0}, "procgen_frame_stack", "at least one frame"),
        ({"procgen_frame_stack": True}, "procgen_frame_stack", "expected int"),
        ({"minecraft_max_env_steps": -1}, "minecraft_max_env_steps", "at least 1"),
        ({"minecraft_max_env_steps": "9"}, "minecraft_max_env_steps", r"expected int \| None"),
        ({"dm_control_full_env_names": {"a": 1}}, "dm_control_full_env_names", r"expected dict\[str, str\]"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(values: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says) as refused:
        EnvConfig.from_dict(values)
    assert (refused.value.stage, refused.value.field) == ("env_cfg", field)


def test_at_least_one_environment() -> None:
    with pytest.raises(gm.ConfigError, match="at least one environment"):
        VenvOptions(n_envs=0)
    with pytest.raises(gm.ConfigError, match="did you mean `n_envs`"):
        VenvOptions.from_dict({"n_env": 2})


def test_the_groups_need_no_gymnasium() -> None:
    program = "import sys, gristmill.envs\nassert 'gymnasium' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", program], check=True)
