"""What killed jobs leave in a pack: finished or given up, from Python."""

import json
from pathlib import Path

import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm


def left(pack: Path, plan: dict[str, list[str]]) -> Path:
    """A publication that was killed, as an earlier version left it."""
    staging = pack / ".pack.part"
    staging.mkdir()
    (staging / ".publish.json").write_text(json.dumps(plan))
    return staging


def test_an_interrupted_publication_is_finished(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "pack", make_rows(2, 5))
    rows = len(gm.open(pack))
    staging = left(pack, {"remove": ["steps.npy"], "publish": [".publish.json.part", "steps.npy"]})
    (pack / "steps.npy").rename(staging / "steps.npy")
    with pytest.raises(gm.FormatError, match="gristmill recover"):
        gm.open(pack)
    planned = gm.recover(pack, dry_run=True)
    assert ([found.fate for found in planned.found], planned.dry_run, staging.exists()) == (["finished"], True, True)
    assert "was interrupted while it put 1 files in place and removed 0" in planned.found[0].detail
    done = gm.recover(pack)
    assert (done.clean, [found.fate for found in done.found], staging.exists()) == (True, ["finished"], False)
    assert len(gm.open(pack)) == rows
    assert gm.recover(pack).found == []


def test_a_plan_that_leads_elsewhere_is_only_given_up(tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "pack", make_rows(1, 3))
    (tmp_path / "mine").write_text("mine")
    staging = left(pack, {"remove": ["../mine"], "publish": []})
    kept = gm.recover(pack)
    assert (kept.clean, kept.found[0].fate) == (False, "kept")
    assert "../mine" in kept.found[0].detail
    assert (gm.recover(pack, abandon=True).found[0].fate, staging.exists()) == ("given_up", False)
    assert ((tmp_path / "mine").read_text(), len(gm.open(pack))) == ("mine", 3)
