"""LeRobot data sets, versions 2 and 3: Parquet and videos as demonstrations, read an episode or a column at a time."""

from gristmill.demos.lerobot.catalogue import data_set
from gristmill.demos.lerobot.source import LeRobotDemos, open_lerobot

__all__ = ["LeRobotDemos", "data_set", "open_lerobot"]
