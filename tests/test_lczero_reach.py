"""What a trainer's program reaches of this loader without a change: names, overlay, states, pickles, no tables."""

import copy
import logging
import os
import pickle
import shelve
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_command import run, told
from test_lczero import GRAPH

import gristmill as gm
from gristmill.compat import lczero

#: The import lines of the trainer's package that name its compiled module, as facts.
IMPORTS = """
from lczero_training._lczero_training import DataLoader
from lczero_training._lczero_training import DataLoader, TensorBase
from lczero_training._lczero_training import TensorBase
"""


def message(games: Path, more: str = "") -> bytes:
    return gm.DataLoaderConfig.from_textproto(GRAPH.format(games=games) + more).to_proto_bytes()


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    """A virtual environment that sees this one's packages, and a package of the trainer's name elsewhere."""
    folder = tmp_path / "trainer"
    venv.create(folder, with_pip=False, symlinks=True)
    package = tmp_path / "src" / "lczero_training"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_lczero_training.py").write_text("raise ImportError('the compiled module')")
    packages = folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{Path(gm.__file__).parents[1]}\n")
    (packages / "trainer.pth").write_text(f"{tmp_path / 'src'}\n")
    return folder


def ask(trainer: Path, text: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [str(trainer / "bin" / "python"), "-W", "error", "-c", text]
    return subprocess.run(line, capture_output=True, text=True, env=env, check=False)


def test_the_trainers_imports_find_this_loader_once_it_is_installed_and_no_longer_after(trainer: Path) -> None:
    same = IMPORTS + "import gristmill.compat.lczero as ours\n"
    same += "assert DataLoader is ours.DataLoader and TensorBase is ours.TensorBase\n"
    same += "assert ours.__name__ == ours.__spec__.name == 'gristmill.compat.lczero'\n"
    assert "the compiled module" in ask(trainer, IMPORTS).stderr
    plan = told("install-lczero", trainer, "--dry-run")
    assert (len(plan["written"]), plan["trainer"], plan["dry_run"]) == (2, True, True)
    assert not any(Path(path).exists() for path in plan["written"])
    assert "is gristmill.compat.lczero there" in run("install-lczero", trainer).stdout
    done = ask(trainer, same)
    assert done.returncode == 0, done
    assert ask(trainer, "import sys; assert not any('gristmill.' in name for name in sys.modules)").returncode == 0
    assert told("install-lczero", trainer)["written"] == []
    assert len(told("install-lczero", trainer, "--undo", "--dry-run")["removed"]) == 2
    assert ask(trainer, same).returncode == 0
    assert told("install-lczero", trainer, "--undo")["removed"] == plan["written"][::-1]
    assert "the compiled module" in ask(trainer, IMPORTS).stderr
    assert "nothing is installed" in run("install-lczero", trainer, "--undo").stdout


def test_two_lines_of_a_program_do_the_same(trainer: Path) -> None:
    done = ask(trainer, "import gristmill.compat.lczero_name\n" + IMPORTS)
    assert done.returncode == 0, done


def test_what_is_no_environment_and_what_is_not_ours_is_refused(trainer: Path, tmp_path: Path) -> None:
    assert "no virtual environment" in run("install-lczero", tmp_path, code=2).stderr
    packages = trainer / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    (packages / "others.pth").unlink()
    assert "gristmill is not installed in" in run("install-lczero", trainer, code=1).stderr
    foreign = packages / "_gristmill_lczero.py"
    foreign.write_text("print('somebody else')")
    for words in ([], ["--undo"]):
        assert "is not ours" in run("install-lczero", trainer, *words, code=1).stderr
    assert foreign.exists()


def test_an_overlay_reaches_what_messages_have_no_field_for(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml, textproto = tmp_path / "over.toml", tmp_path / "over.textproto"
    toml.write_text(f"seed = 5\njournal = '{tmp_path / 'journal'}'\nmemory = '1GiB'\n")
    textproto.write_text(f"seed: 5 journal: '{tmp_path / 'other'}' memory: '1GiB'")
    with gm.DataLoader(gm.DataLoaderConfig.from_textproto(GRAPH.format(games=games) + "seed: 5")) as native:
        expected = native.get_next()["probs"].copy()
    for path in (toml, textproto):
        monkeypatch.setenv(lczero.OVERLAY, str(path))
        loader = lczero.make_dataloader(message(games))
        np.testing.assert_array_equal(loader.get_next()[1], expected)
        assert loader.seed == 5
        loader.stop()
    assert (tmp_path / "journal").exists()
    assert (tmp_path / "other").exists()


def test_an_overlay_holds_files_and_reports_bad_games(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, report = games / ".held", tmp_path / "bad.jsonl"
    for game in sorted(games.glob("*.gz"))[:6]:
        game.write_bytes(b"no gzip")
    over = tmp_path / "over.toml"
    over.write_text(
        f"seed = 5\nspill = '{held}'\nbad_chunks = 'quarantine'\nquarantine = '{report}'\n"
        "[[stage]]\nname = 'split'\nchunk_source_splitter = { weight = [1, 0] }\n"
    )
    monkeypatch.setenv(lczero.OVERLAY, str(over))
    loader = lczero.make_dataloader(message(games))
    for _ in range(20):
        loader.get_next()
    loader.save(tmp_path / "state.json")
    loader.stop()
    assert "training." in report.read_text()
    assert any(held.iterdir())


def test_an_overlay_belongs_to_stages_by_name(games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = tmp_path / "over.toml"
    monkeypatch.setenv(lczero.OVERLAY, str(over))
    over.write_text("[[stage]]\nname = 'tensors'\ntensor_generator = { batch_size = 3 }\n")
    loader = lczero.make_dataloader(message(games))
    assert loader.get_next()[1].shape == (3, 1858)
    loader.stop()
    over.write_text("[[stage]]\nname = 'tensors'\ntensor_generator = { tensors = ['planes', 'probs', 'values:4'] }\n")
    loader = lczero.make_dataloader(message(games))
    values = loader.get_next()[2]
    assert values.shape == (16, 6, 4)
    assert np.isnan(values[:, 1:, 3]).all()
    loader.stop()
    with pytest.raises(gm.FormatError, match="whole games"):
        gm.chess.encode(np.zeros(1, gm.chess.V7), tensors=["values:4"])
    for text, says in [
        ("[[stage]]\nname = 'tensor'\ntensor_generator = { batch_size = 3 }\n", "did you mean `tensors`"),
        ("sead = 1", "line 1, column 1"),
        ("[[stage]]\nname = 'tensors'\ntensor_generator = { batch_size = 0 }\n", "batch_size"),
    ]:
        over.write_text(text)
        with pytest.raises(lczero.LoaderConfigError, match=says) as refused:
            lczero.DataLoader(message(games))
        assert "GRISTMILL_OVERLAY" in str(refused.value)
        assert str(over) in str(refused.value)
    over.write_bytes(b"\xff")
    with pytest.raises(lczero.LoaderConfigError, match="cannot be read"):
        lczero.DataLoader(message(games))
    over.unlink()
    with pytest.raises(lczero.LoaderConfigError, match=r"No such file.*over\.toml"):
        lczero.DataLoader(message(games))


def test_a_program_continues_where_it_stood(games: Path, tmp_path: Path) -> None:
    serialized = message(games, "seed: 5")
    loader = lczero.make_dataloader(serialized)
    loader.get_next()
    state = loader.state_dict()
    loader.save(tmp_path / "state.json")
    expected = [tensor.copy() for tensor in loader.get_next()]
    address = loader.serve_metrics()
    with urllib.request.urlopen(f"http://{address}/status") as answer:
        assert b'"stages"' in answer.read()
    with pytest.raises(lczero.LoaderConfigError, match="cannot listen"):
        loader.serve_metrics("256.0.0.1:1")
    loader.stop()
    for way in ("state", "file"):
        again = lczero.DataLoader(serialized)
        if way == "state":
            again.load_state_dict(state)
        else:
            again.load(tmp_path / "state.json")
        again.start()
        for ours, theirs in zip(again.get_next(), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        with pytest.raises(gm.StateError):
            again.load_state_dict(state)
        again.stop()
    served = lczero.DataLoader(serialized)
    served.serve_metrics()
    with pytest.raises(RuntimeError, match="started before"):
        served.start()
    served.stop()


def test_tables_that_are_missing_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mend = "stage { name: 'mend' input: 'pool' chunk_rescorer { syzygy_paths: '/no/such/tables' } }"
    shutil.copy(Path(__file__).with_name("data") / "generated-chess.tar", tmp_path)
    text = GRAPH.format(games=tmp_path).replace('name: "unpack" input: "pool"', 'name: "unpack" input: "mend"') + mend
    config = gm.DataLoaderConfig.from_textproto(text)
    with caplog.at_level(logging.WARNING):
        loader = lczero.make_dataloader(config.to_proto_bytes())
    assert any("stage `mend`: /no/such/tables" in record.getMessage() for record in caplog.records)
    assert loader.get_next()[0].shape[0] == 16
    loader.stop()
    with pytest.raises(gm.ConfigError, match=r"line 17.*syzygy_paths.*allow_missing_tables") as refused:
        gm.DataLoader(config)
    assert (refused.value.stage, refused.value.field) == ("mend", "syzygy_paths")


def test_batches_pickle_as_plain_arrays(games: Path, tmp_path: Path) -> None:
    loader = lczero.make_dataloader(message(games, "seed: 5"))
    batch = loader.get_next()
    assert all(isinstance(tensor, lczero.TensorBase) for tensor in batch)
    kept = np.empty(1, dtype=object)
    kept[0] = batch
    np.savez(tmp_path / "batches.npz", batches=kept)
    with shelve.open(str(tmp_path / "shelf")) as shelf:
        shelf["0"] = {"inputs": batch[0], "strided": batch[2][:, ::2]}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / f"{protocol}.pkl").write_bytes(pickle.dumps(batch, protocol))
    outside: list[Any] = []
    within = pickle.dumps(batch[0], 5, buffer_callback=outside.append)
    assert len(outside) == 1
    assert type(pickle.loads(within, buffers=outside)) is np.ndarray
    assert type(copy.deepcopy(batch[0])) is type(batch[0])
    np.save(tmp_path / "probs.npy", batch[1])
    reader = """
import importlib.abc, pickle, shelve, sys
import numpy as np
class Barred(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "gristmill":
            raise ImportError("gristmill is not installed")
sys.meta_path.insert(0, Barred())
probs = np.load("probs.npy")
found = [np.load("batches.npz", allow_pickle=True)["batches"][0]]
found += [pickle.load(open(f"{protocol}.pkl", "rb")) for protocol in range(6)]
for batch in found:
    assert [type(tensor) for tensor in batch] == [np.ndarray] * 3, batch
    assert [tensor.shape[1:] for tensor in batch] == [(112, 8, 8), (1858,), (6, 3)]
    assert batch[1].tobytes() == probs.tobytes() and batch[1].flags.writeable
with shelve.open("shelf") as shelf:
    assert shelf["0"]["strided"].shape == (16, 3, 3)
"""
    done = subprocess.run([sys.executable, "-c", reader], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loader.stop()
