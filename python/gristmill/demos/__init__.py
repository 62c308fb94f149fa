"""Demonstrations of agents: files of many forms as trajectories, data sets of a task as one dictionary of arrays."""

from gristmill.demos.config import EnvCfg, EnvData, VenvOpts, load_config
from gristmill.demos.native import load_dataset_dict
from gristmill.demos.source import Demos

__all__ = ["Demos", "EnvCfg", "EnvData", "VenvOpts", "load_config", "load_dataset_dict"]
