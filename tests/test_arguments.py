"""Unknown arguments: every public function and constructor names the nearest one that it has."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from demo_files import write_imitation

import gristmill as gm

#: What users are given and never make: results, selections, exceptions, and names that several classes share.
GIVEN = {
    *("Batch", "Array", "Output", "TensorSpec", "ChunkAnchor", "Layout", "Source", "Demos", "Rows", "Games"),
    *("Trajectories", "LineageStep", "Mark", "Duplicate", "Duplicates", "Skipped", "Remark", "Recovery", "Vanished"),
    *(
        "Checksummed",
        "Converted",
        "ConvertedDemos",
        "ConvertedGames",
        "Merged",
        "Packed",
        "Recovered",
        "ToldGames",
        "Valued",
        "Made",
        "Verification",
        "Rescored",
    ),
    *("Diagnosis", "OldestNeeded", "Split", "GameSplit", "ThreeWaySplit", "SafePickleError"),
}

#: Functions of one or two arguments, which name none of them.
PLAIN = {"merge_states", "load_wds_datasets", "load_dataset_dict"}


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    places: list[ModuleType] = [gm, gm.views, gm.config, gm.presets, gm.g2048]
    for place in places:
        names = getattr(place, "__all__", None) or [n for n in vars(place) if not n.startswith("_")]
        for name in names:
            found = getattr(place, name)
            ours = getattr(found, "__module__", "").startswith("gristmill")
            error = inspect.isclass(found) and issubclass(found, Exception)
            if callable(found) and ours and not error and name not in GIVEN | PLAIN and takes_words(found):
                yield f"{place.__name__}.{name}", found


def takes_words(function: Callable[..., Any]) -> list[str]:
    own = inspect.signature(function).parameters.values()
    return [p.name for p in own if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]


@pytest.mark.parametrize(("name", "function"), list(callables()))
def test_an_unknown_argument_is_named_with_the_nearest(name: str, function: Callable[..., Any]) -> None:
    word = max(takes_words(function), key=len)
    with pytest.raises(TypeError, match=rf"has no option '{word}x'; did you mean '{word}'\?"):
        function(**{f"{word}x": 1})


@pytest.mark.parametrize(
    ("function", "given", "meant"),
    [
        (gm.DataLoader, "num_workers", "threads"),
        (gm.DataLoader, "drop_last", "last_batch"),
        (gm.DataLoader, "random_state", "seed"),
        (gm.PairLoader, "world", "world_size"),
        (gm.pack, "num_workers", "workers"),
        (gm.presets.lc0, "num_epochs", "epochs"),
    ],
)
def test_what_others_call_it_is_known(function: Callable[..., Any], given: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"has no option '{given}'; did you mean '{meant}'"):
        function(**{given: 1})


def test_signatures_are_what_they_were() -> None:
    assert "queue_capacity" in inspect.signature(gm.DataLoader).parameters
    assert str(inspect.signature(gm.views.Stack)).startswith("(frames")


def test_older_names_are_understood_and_warned_of(tmp_path: Path) -> None:
    opened: Callable[..., Any] = gm.open
    write_imitation(tmp_path / "final.pkl", [3, 4])
    with pytest.warns(DeprecationWarning, match=r"open\(\): `spill` is called `columns` now"):
        old = opened(tmp_path / "final.pkl", spill=tmp_path / "kept")
    assert np.array_equal(old.column("obs"), gm.open(tmp_path / "final.pkl", columns=tmp_path / "kept").column("obs"))
    with pytest.raises(TypeError, match="has no option 'spill'"):
        opened(tmp_path / "final.pkl", spill=tmp_path / "kept", columns=tmp_path / "kept")
    needed = gm.OldestNeeded("training.100.gz", "training.100.gz", "natural")
    with pytest.warns(DeprecationWarning, match="`is_after` is called `may_delete` now"):
        assert needed.is_after("training.9.gz")
    assert needed.may_delete("training.9.gz")
    assert not needed.may_delete("training.100.gz")
    with pytest.warns(DeprecationWarning, match="`Step` is called `LineageStep` now"):
        assert gm.Step is gm.LineageStep
