"""Packages that users choose: imported at their first use, and named with their extra where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from gristmill.errors import MissingPackageError


def optional(module: str, extra: str) -> Any:
    """The imported module.

    Raises:
        MissingPackageError: it cannot be imported; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(f"{error}; `pip install gristmill[{extra}]` brings {module.split('.')[0]}") from error
