"""Demonstrations of agents: files of many forms as trajectories, data sets of a task as one dictionary of arrays."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from gristmill.demos.collecting import Collected, collect_random
from gristmill.demos.config import EnvData, Groups, load_config
from gristmill.demos.mixing import MixedLoader, PairLoader, StepLoader
from gristmill.demos.native import load_dataset_dict
from gristmill.demos.own.arrays import ArrayDemos, from_arrays
from gristmill.demos.recording import record
from gristmill.demos.source import Demos, open_demos
from gristmill.demos.wds import Part, WdsDatasets, load_wds_datasets
from gristmill.demos.writer import ShardWriter, get_meta_dict, write_frames

if _TYPE_CHECKING:
    from gristmill.demos import lerobot as lerobot
    from gristmill.demos import minari as minari

__all__ = [
    "ArrayDemos",
    "Collected",
    "Demos",
    "EnvData",
    "Groups",
    "MixedLoader",
    "PairLoader",
    "Part",
    "ShardWriter",
    "StepLoader",
    "WdsDatasets",
    "collect_random",
    "from_arrays",
    "get_meta_dict",
    "lerobot",
    "load_config",
    "load_dataset_dict",
    "load_wds_datasets",
    "minari",
    "open_demos",
    "record",
    "write_frames",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    # Extras, and long to import.
    if name not in ("lerobot", "minari"):
        raise AttributeError(f"module 'gristmill.demos' has no attribute {name!r}")
    return _import_module(f"gristmill.demos.{name}")
