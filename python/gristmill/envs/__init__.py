"""Real environments, many at once, with the pictures that stored demonstrations have (spec demos §1 and §2).

An optional extra: `pip install gristmill[envs]` for Gymnasium, and `[atari]`, `[dm-control]` or `[procgen]` beside it.
"""

from gristmill.envs.config import BENCHMARKS, EnvConfig, VenvOptions

__all__ = ["BENCHMARKS", "EnvConfig", "VenvOptions"]
