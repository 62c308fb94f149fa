"""Every program in `examples/` runs without arguments, on data that it makes, and says what it promises."""

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"

#: What a program must have said at its end.
PROMISES = {
    "01_look_at_a_file": r"probs float32 \(\d+, 1858\)",
    "02_feed_batches": r"^12800 positions in ",
    "03_validate_on_held_out_games": r"^validated on [1-9]\d* positions, each once",
    "04_train_with_jax": r"^mean loss of the first 20 steps (\S+), of the last 20 (\S+)$",
    "05_stop_and_resume": r"batch 20 is the same to the bit: True$",
    "06_pack_chess_games": r"^an epoch has each of (\d+) positions once; expected \1$",
    "07_train_on_2048": r"^the move of the search is found in (\d+)% of",
    "08_demonstrations": r"^(\d+) steps in the pack, \1 in an epoch of it$",
    "09_train_with_pytorch": r"^mean loss of the first 20 steps (\S+), of the last 20 (\S+)$",
    "10_share_batches_among_ranks": r"^one rank resumes with the same rows: True$",
    "11_log_the_loader": r"^(\d+) numbers of the loader beside the loss, at (\d+) steps$",
    "12_train_2048_with_values": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
    "13_train_with_flax": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
    "14_clone_a_player_with_equinox": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
    "15_train_with_keras": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
    "16_learn_representations_from_pairs": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
    "17_train_with_lightning": r"the same: True\nmean loss of the first 20 steps (\S+), of the last 20 (\S+)$",
    "18_train_nnue_with_pytorch": r"^mean loss of the first 10 steps (\S+), of the last 10 (\S+)$",
}

#: What programs in frameworks need, and the part of the first loss that the last one is below.
IN_FRAMEWORKS = {
    "13_train_with_flax": (("jax", "flax", "optax"), 0.95),
    "14_clone_a_player_with_equinox": (("jax", "equinox", "optax", "ale_py"), 0.3),
    "15_train_with_keras": (("jax", "keras"), 0.85),
    "16_learn_representations_from_pairs": (("jax", "optax"), 0.6),
    "17_train_with_lightning": (("torch", "lightning"), 0.9),
    "18_train_nnue_with_pytorch": (("torch",), 0.8),
}

#: Those of which more is expected than words.
JUDGED = (
    *("04_train_with_jax", "07_train_on_2048", "09_train_with_pytorch", "12_train_2048_with_values"),
    *IN_FRAMEWORKS,
)


def run(program: str, folder: Path, *words: str, strict: bool = True) -> "re.Match[str]":
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    done = subprocess.run(
        [sys.executable, "-W", "error" if strict else "default", FOLDER / f"{program}.py", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(PROMISES[program], done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the programs run one after the other, as a reader would run them."""
    return tmp_path_factory.mktemp("examples")


def test_every_program_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(PROMISES)


@pytest.mark.parametrize("program", [name for name in PROMISES if name not in JUDGED])
def test_examples_run(program: str, folder: Path) -> None:
    run(program, folder)


def test_tensorboard_reads_the_numbers(folder: Path) -> None:
    pytest.importorskip("tensorboard")
    numbers, steps = map(int, run("11_log_the_loader", folder, "tensorboard").groups())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(folder / "runs")).Reload()
    tags = [tag for kind in ("scalars", "tensors") for tag in events.Tags()[kind]]
    assert len([tag for tag in tags if tag.startswith("loader/")]) == numbers > 20
    assert {"loss", "loader/tensors/rows", "loader/consumer_wait_seconds"} <= set(tags)
    assert len(events.Tensors("loss")) == steps


def test_weights_and_biases_takes_the_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in [("WANDB_MODE", "offline"), ("WANDB_SILENT", "true"), ("WANDB_DIR", str(folder))]:
        monkeypatch.setenv(name, value)
    numbers, _ = map(int, run("11_log_the_loader", folder, "wandb").groups())
    (kept,) = (folder / "wandb").glob("offline-run-*/*.wandb")
    data = kept.read_bytes()
    assert numbers > 20
    assert b"loader/tensors/rows" in data


def test_the_loss_falls_with_jax(folder: Path) -> None:
    pytest.importorskip("jax")
    first, last = map(float, run("04_train_with_jax", folder).groups())
    assert last < 0.9 * first


def test_the_loss_of_moves_and_values_falls_with_jax(folder: Path) -> None:
    pytest.importorskip("jax")
    first, last = map(float, run("12_train_2048_with_values", folder).groups())
    assert last < 0.8 * first


def test_the_loss_falls_with_torch(folder: Path) -> None:
    pytest.importorskip("torch")
    first, last = map(float, run("09_train_with_pytorch", folder).groups())
    assert last < 0.9 * first


def test_the_head_of_2048_beats_chance(folder: Path) -> None:
    assert int(run("07_train_on_2048", folder).group(1)) > 30


@pytest.mark.parametrize("program", list(IN_FRAMEWORKS))
def test_the_loss_falls_in_frameworks(program: str, folder: Path) -> None:
    packages, part = IN_FRAMEWORKS[program]
    if missing := [package for package in packages if importlib.util.find_spec(package) is None]:
        pytest.skip(f"skipped: needs {', '.join(missing)}; `make test-frameworks` or `make test-torch`")
    # Lightning warns of what it does itself.
    first, last = map(float, run(program, folder, strict="lightning" not in packages).groups())
    assert last < part * first
