"""A source and a folder of states -> a loader that stands where the run was, with however many ranks there are now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.errors import StateError
from gristmill.loaders.hearing import LOGGER
from gristmill.loaders.loader import DataLoader, Feedable
from gristmill.loaders.states import Missing, check_missing
from gristmill.options.arguments import named_as


@named_as(DataLoader)
def resume(
    folder: Path,
    source: Feedable | Sequence[Feedable] | Mapping[str, Any],
    *,
    missing: Missing = "refuse",
    **options: Any,
) -> DataLoader:
    """The loader of a run that may have begun already: at its last saved step, or at the beginning where there is none.

        loader = gm.resume("run/loader", config)
        for number, batch in enumerate(loader, 1):
            step(batch)
            if number % 1000 == 0:
                loader.save("run/loader")

    Started again, the same program continues, with as many processes as there are now. It takes the newest step that
    all ranks had saved; the log says what newer ones lack. Its own rank it finds as `DataLoader` does.

    Args:
        folder: where `loader.save` puts states, on a disk or in a bucket; it is made where it is not there.
        source: as for `gristmill.DataLoader`.
        missing: as for `DataLoader.load`.
        options: as for `gristmill.DataLoader`.

    Raises:
        StateError: the states belong to another configuration or other files; or no step is there as a whole.
        NotADirectoryError: `folder` is a file.
        OSError: it cannot be read or made.
    """
    check_missing(missing)
    if _gristmill.is_local(folder):
        os.makedirs(folder, exist_ok=True)
    steps = _gristmill.saved_steps(folder)
    loader = DataLoader(source, **options)
    if not steps:
        LOGGER.info("resume: nothing is saved in %s; the run begins", folder)
        return loader
    newest = next(((step, ranks) for step, ranks, lacks in steps if lacks is None), None)
    newer = [one for one in steps if newest is None or one[0] > newest[0]]
    lacking = "; ".join(f"step {step} lacks rank {lacks} of {ranks}" for step, ranks, lacks in newer)
    if newest is None:
        remedy = "copy the missing parts there, or remove the folder to start again"
        raise StateError(f"{os.fspath(folder)}: no step is whole: {lacking}; {remedy}")
    loader.load(folder, missing=missing)
    message = "resume: from step %d, saved by %d, shared by %d"
    LOGGER.info(message + ("; " + lacking if lacking else ""), *newest, loader.world_size)
    return loader
