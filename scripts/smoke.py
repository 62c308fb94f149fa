"""An installed gristmill does what it is for, in an empty folder; says with what. `--command` where it has the command.

Run by the interpreter of an environment that has gristmill and NumPy alone: nothing of the checkout is imported.
"""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm


def batches() -> None:
    """A stream, a pack, a resumed loader; rows of 2048; trajectories."""
    gm.generate("chess", "games", games=20, seed=1)
    with gm.DataLoader(gm.presets.lc0("games", pool=10, reservoir=64, batch_size=32, seed=1, watch=False)) as loader:
        planes, probs, values = loader.get_next()
        assert (planes.shape, probs.shape, values.shape) == ((32, 112, 8, 8), (32, 1858), (32, 6, 3)), planes.shape
    gm.pack("games", "chess-pack")
    pack = gm.open("chess-pack", expect=gm.Games)
    with gm.DataLoader(pack, batch_size=32, seed=1) as loader:
        loader.get_next()
        state, following = loader.state_dict(), loader.get_next()
    again = gm.DataLoader(pack, batch_size=32, seed=1)
    again.load_state_dict(state)
    with again:
        same = again.get_next()
        assert all(
            np.asarray(same[name]).tobytes() == np.asarray(following[name]).tobytes() for name in following.names
        )
    gm.generate("2048", "logs", games=3, seed=1, moves_max=50)
    gm.pack("logs", "2048-pack")
    with gm.DataLoader(gm.open("2048-pack"), encoder=gm.g2048.HardMove(), batch_size=16, seed=1) as rows:
        assert rows.get_next().rows == 16
    mine = gm.demos.from_arrays([7, 5], {"obs": np.zeros((12, 4), np.float32), "acts": np.arange(12)})
    assert sum(len(batch["obs"]) for batch in gm.StepLoader(mine, gm.pairs.BC, batch_size=4, seed=1)) == 12


def run(*words: str) -> str:
    """What a program says; it ends well."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def command() -> None:
    """The command beside the interpreter, and the module, which is the same."""
    program = str(Path(sys.executable).parent / "gristmill")
    run(program, "generate", "chess", "played", "--games", "5", "--seed", "1")
    run(program, "pack", "played", "played-pack")
    found: Any = json.loads(run(program, "verify", "played-pack", "--json"))
    assert found["ok"], found
    assert run(program, "--version") == run(sys.executable, "-m", "gristmill", "--version")
    run(program, "describe", "played-pack", "--license", "CC0-1.0")
    assert json.loads(Path("played-pack/croissant.json").read_text())["conformsTo"].endswith("/1.1")


def main(*words: str) -> None:
    """Runs all of it in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        batches()
        if "--command" in words:
            command()
        os.chdir("/")
    assert gm.__version__ == importlib.metadata.version("gristmill")
    print(f"gristmill {gm.__version__} on Python {platform.python_version()} with NumPy {np.__version__}: it works")


if __name__ == "__main__":
    main(*sys.argv[1:])
