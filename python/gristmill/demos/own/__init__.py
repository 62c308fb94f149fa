"""Demonstrations in files of one's own, or in arrays: which array is which field, and where episodes end."""

from gristmill.demos.own.arrays import ArrayDemos, from_arrays
from gristmill.demos.own.opening import could_be_own, is_own, open_own

__all__ = ["ArrayDemos", "could_be_own", "from_arrays", "is_own", "open_own"]
