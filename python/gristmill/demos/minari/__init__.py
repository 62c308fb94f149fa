"""Minari data sets, HDF5 and Arrow: read like any other demonstrations, and written from any. An optional extra:
`pip install gristmill[minari]`.
"""

from gristmill.demos.minari.catalogue import data_folder
from gristmill.demos.minari.shards import write_shards
from gristmill.demos.minari.source import MinariDemos, open_minari
from gristmill.demos.minari.writer import Written, write

__all__ = ["MinariDemos", "Written", "data_folder", "open_minari", "write", "write_shards"]
