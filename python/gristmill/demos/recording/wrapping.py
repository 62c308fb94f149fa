"""An environment, or several at once -> the same, with every episode recorded. Gymnasium is imported at the first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

from gristmill.errors import ConfigError
from gristmill.options.arguments import named
from gristmill.options.optional import optional

if TYPE_CHECKING:
    import numpy.typing as npt
    from gymnasium import Env
    from gymnasium.vector import VectorEnv

    from gristmill.demos.recording.wrappers import RecordedEnv, RecordedVectorEnv


@overload
def record(
    env: Env[Any, Any],
    out: str | os.PathLike[str],
    *,
    infos: Mapping[str, npt.DTypeLike] | None = None,
    file_bytes: int = 64 << 20,
) -> RecordedEnv: ...
@overload
def record(
    env: VectorEnv[Any, Any, Any],
    out: str | os.PathLike[str],
    *,
    infos: Mapping[str, npt.DTypeLike] | None = None,
    file_bytes: int = 64 << 20,
) -> RecordedVectorEnv: ...
@named
def record(
    env: Any,
    out: str | os.PathLike[str],
    *,
    infos: Mapping[str, npt.DTypeLike] | None = None,
    file_bytes: int = 64 << 20,
) -> RecordedEnv | RecordedVectorEnv:
    """Records what an agent does: every episode becomes a trajectory in a folder, which `gristmill.open` reads.

        env = gm.demos.record(gymnasium.make("CartPole-v1"), "played")
        ...  # play as before, and close it
        gm.pack("played", "pack")

    Trajectories have `obs`, `next_obs`, `acts`, `rews`, `terminated` and `truncated`; parts of dictionaries are fields
    of their own, `obs.image`. An episode is in its file when its last step returns, and the file appears to readers by
    `flush`, by `close`, or at its size; what a killed process had written, the next reader or recorder takes up. An
    episode that is begun again or closed before its end is written as cut. Any number of processes may record the
    same environment into one folder.

    Args:
        env: an environment of Gymnasium, or a vector of them, each of which has its own episodes.
        out: the folder; made where it does not exist.
        infos: what to keep of infos, by name its dtype: `{"lives": "i4", "episode.r": "f8"}`. The field is
            `infos.lives`, and `infos.lives.said` is false in steps in which the environment did not say it.
        file_bytes: bytes of a file before the next one is begun.

    Raises:
        MissingPackageError: Gymnasium is not installed.
        TypeError: it is no environment.
        ConfigError: spaces whose values are no arrays, or a folder of other recordings.
        OSError: the folder cannot be written.
    """
    gymnasium = optional("gymnasium", "envs")
    from gristmill.demos.recording.wrappers import RecordedEnv, RecordedVectorEnv

    chosen = dict(infos or {})
    if not all(isinstance(name, str) and name for name in chosen):
        raise ConfigError(f"infos: expected names with their dtypes, found {chosen!r}", field="infos")
    if isinstance(env, gymnasium.vector.VectorEnv):
        return RecordedVectorEnv(env, out, chosen, file_bytes)
    if isinstance(env, gymnasium.Env):
        return RecordedEnv(env, out, chosen, file_bytes)
    raise TypeError(f"env is {type(env).__name__}; expected an environment of Gymnasium, or a vector of them")
