"""Real environments, many at once, with the pictures that stored demonstrations have.

    venv = gm.envs.load_vec_env({"benchmark_name": "atari", "task_name": "PongNoFrameskip-v4"}, {"n_envs": 8})
    observations, infos = venv.reset()

An optional extra: `pip install gristmill[envs]` for Gymnasium, and `[atari]`, `[dm-control]` or `[procgen]` beside it.
Nothing of that is imported before an environment is made.
"""

from gristmill.envs.config import BENCHMARKS, EnvConfig, VenvOptions
from gristmill.envs.infos import info_of
from gristmill.envs.loading import load_vec_env

__all__ = ["BENCHMARKS", "EnvConfig", "VenvOptions", "info_of", "load_vec_env"]
