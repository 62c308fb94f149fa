"""Data sets of processed shards, several tasks at once: each a list of trajectories, all of one kind of observation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.config import EnvData
from gristmill.demos.selected import Selected
from gristmill.demos.source import Demos, open_demos
from gristmill.envs.config import EnvConfig
from gristmill.errors import ConfigError, FormatError
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout

_KEYS = ("type", "env_cfg", "env_data")


class Part:
    """The first trajectories of some demonstrations, or their first steps; the last trajectory may be cut."""

    def __init__(self, demos: Demos, config: Mapping[str, Any], steps: int) -> None:
        #: What it is a part of.
        self.demos = demos
        #: The whole configuration of the call: `type`, `env_cfg`, `env_data`.
        self.config = dict(config)
        self._lengths: list[int] = []
        for i in range(len(demos)):
            left = steps - sum(self._lengths)
            if left == 0:
                break
            self._lengths.append(min(left, demos.frames(i)))

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return self.demos.layout

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the shards."""
        return self.demos.metadata

    @property
    def num_frames(self) -> int:
        """Steps of all trajectories."""
        return sum(self._lengths)

    @property
    def games(self) -> Self:
        """The trajectories by number, as packs have them: these themselves."""
        return self

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return list(self._lengths)

    def __len__(self) -> int:
        """How many trajectories there are."""
        return len(self._lengths)

    def frames(self, index: int) -> int:
        """Steps of one trajectory.

        Raises:
            IndexError: there is no such trajectory.
        """
        return self._lengths[index]

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut: by the part, or in the shards.

        Raises:
            IndexError: there is no such trajectory.
        """
        place = range(len(self))[index]
        return self._lengths[place] < self.demos.frames(place) or self.demos.truncated(place)

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory, one value per step.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: a pickle in it names what is not data.
        """
        place = range(len(self))[index]
        steps, whole = self._lengths[place], self.demos.frames(place)
        # What has another number of values (a reset's alone) belongs to the first step.
        return {
            name: values[:steps] if len(values) == whole else values
            for name, values in self.demos.extras(place).items()
        }

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Selected: ...
    def __getitem__(self, index: int | slice) -> Array | Selected:
        """One trajectory as a structured array, or some of them.

        Raises:
            IndexError: there is no such trajectory.
        """
        if isinstance(index, slice):
            return Selected(self, range(len(self))[index])
        return self.demos[range(len(self))[index]][: self._lengths[index]].view(Array)

    def column(self, name: str) -> Array:
        """One field of all steps.

        Raises:
            FormatError: there is no such field.
        """
        return self.demos.column(name)[: self.num_frames].view(Array)

    def columns(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Some fields of all steps by name, as `column` gives them.

        Raises:
            FormatError: as of `column`.
        """
        return {name: column[: self.num_frames] for name, column in self.demos.columns(names).items()}

    def __repr__(self) -> str:
        return f"Part({self.demos!r}, trajectories={len(self)}, frames={self.num_frames})"


class WdsDatasets(NamedTuple):
    """Data sets in the order of their configurations, and what they have in common."""

    datasets: list[Part]
    #: `color_space`, `observation_space` and `action_space` of all.
    metadata: dict[str, Any]


def load_wds_datasets(
    configs: Sequence[Mapping[str, Any]],
    *,
    env_cfg: EnvConfig | Mapping[str, Any] | None = None,
    env_data: EnvData | Mapping[str, Any] | None = None,
    root: str | os.PathLike[str] | None = None,
    columns: str | os.PathLike[str] | None = None,
    strict: bool = True,
) -> WdsDatasets:
    """Opens the processed shards that each configuration names.

    Args:
        configs: one mapping for each data set: `type` (`"demos"` by default, or any folder's name such as `"random"`),
            and changes to `env_cfg` and `env_data`, which are merged over the current ones key by key.
        env_cfg: the current configuration; a mapping is read over the defaults.
        env_data: where data lies; a mapping is read over the defaults.
        root: another `data_root`.
        columns: a folder to keep the data in as columns that are mapped, instead of memory (`gristmill.open`).
        strict: refuse shards with anything after the end mark of their tar; `False` reads what lies before it.

    Returns:
        One `Part` for each configuration, and the metadata that all share. The shards of a data set are those in
        `<data_root>/data/processed/<type>/<benchmark_name>/<task_name>`, or in `<type>/<task_name>/<benchmark_name>`
        where that exists instead. `wds_n_trajs` and `wds_n_trans` keep that many trajectories or steps.

    Raises:
        ConfigError: an empty list, an unknown key, a missing folder, more trajectories or steps than there are.
        FormatError: a damaged shard; shards without metadata; spaces or colours that differ.
    """
    cfg = env_cfg if isinstance(env_cfg, EnvConfig) else EnvConfig.from_dict(env_cfg or {})
    data = env_data if isinstance(env_data, EnvData) else EnvData.from_dict(env_data or {})
    if root is not None:
        data = replace(data, data_root=os.fspath(root))
    if not configs:
        raise ConfigError("no configuration; expected at least one, such as {}", field="configs")
    datasets = [_open(config, cfg, data, f"configs[{i}]", columns, strict) for i, config in enumerate(configs)]
    first = datasets[0]
    for other in datasets[1:]:
        try:
            first.demos._compiled.mixes_with(other.demos._compiled)
        except FormatError as e:
            raise FormatError(f"{_folder(first)} and {_folder(other)}: {e}", kind=e.kind) from e
    shared = {key: first.metadata[key] for key in ("color_space", "observation_space", "action_space")}
    return WdsDatasets(datasets, shared)


def _folder(part: Part) -> str:
    return part.demos.path


def _open(
    config: Mapping[str, Any],
    cfg: EnvConfig,
    data: EnvData,
    place: str,
    columns: str | os.PathLike[str] | None,
    strict: bool,
) -> Part:
    for key in config:
        if key not in _KEYS:
            raise ConfigError(
                f"{place} has an unknown key `{key}`; {EnvData.advice(str(key), list(_KEYS))}", field=place
            )
    kind = config.get("type", "demos")
    if not isinstance(kind, str) or os.sep in kind or kind in ("", ".", ".."):
        raise ConfigError(f"{place}.type: expected the name of a folder, found {kind!r}", field=f"{place}.type")
    cfg, data = cfg.updated(config.get("env_cfg", {})), data.updated(config.get("env_data", {}))
    if data.wds_n_trajs is not None and data.wds_n_trans is not None:
        raise ConfigError(f"{place}: wds_n_trajs and wds_n_trans are both set; choose one", field="wds_n_trajs")
    above = os.path.join(os.fspath(data.data_root), "data", "processed", kind)
    orders = [(cfg.benchmark_name, cfg.task_name), (cfg.task_name, cfg.benchmark_name)]
    folders = [os.path.join(above, *order) for order in orders]
    folder = next((one for one in folders if os.path.isdir(one) and _gristmill.holds_demos(one)), None)
    if folder is None:
        message = f"{place}: no shards in {folders[0]} nor in {folders[1]}; the configuration is {dict(config)}"
        raise ConfigError(message, field=place)
    demos = open_demos(folder, columns=columns, strict=strict)
    if "observation_space" not in demos.metadata:
        message = f"{folder}: missing: the shards have no metadata, so nothing says what they hold"
        raise FormatError(message, kind="missing", source=folder)
    whole = {"type": kind, "env_cfg": cfg.to_dict(), "env_data": data.to_dict()}
    return Part(demos, whole, _steps(demos, data, place))


def _steps(demos: Demos, data: EnvData, place: str) -> int:
    """How many steps are kept."""
    if data.wds_n_trans is not None:
        if not 0 < data.wds_n_trans <= demos.num_frames:
            message = f"{place}: wds_n_trans={data.wds_n_trans}; there are {demos.num_frames} transitions"
            raise ConfigError(message, field="wds_n_trans")
        return data.wds_n_trans
    if data.wds_n_trajs is not None:
        ends = np.flatnonzero(demos.column("dones"))
        if not 0 < data.wds_n_trajs <= len(ends):
            message = f"{place}: wds_n_trajs={data.wds_n_trajs}; {len(ends)} trajectories have an end"
            raise ConfigError(message, field="wds_n_trajs")
        return int(ends[data.wds_n_trajs - 1]) + 1
    return demos.num_frames
