"""Puts `gristmill.compat.lczero` under the name of the module that the Lc0 trainer compiles.

`gristmill install-lczero VENV` copies this file beside the packages of an environment, where a `.pth` file runs it at
every start of that Python. It needs the standard library alone, and imports gristmill when the trainer's module is.
Without a copy: `import gristmill.compat.lczero_name` before the trainer's package.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys

#: The module that the trainer compiles, and ours.
THEIRS, OURS = "lczero_training._lczero_training", "gristmill.compat.lczero"


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, wherever the package around it lies."""

    def __init__(self):  # type: ignore[no-untyped-def]
        self._own = None

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        """Where the module is."""
        return importlib.machinery.ModuleSpec(THEIRS, self, origin=OURS) if fullname == THEIRS else None

    def create_module(self, spec):  # type: ignore[no-untyped-def]
        """Ours in its stead."""
        module = importlib.import_module(OURS)
        self._own = module.__spec__
        return module

    def exec_module(self, module):  # type: ignore[no-untyped-def]
        """It has run already, under its own name, which it keeps."""
        module.__spec__ = self._own


if not any(type(finder).__name__ == "_Finder" and hasattr(finder, "_own") for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder())  # type: ignore[no-untyped-call]
