"""`gristmill.resume`: runs that come back with other numbers of processes, under real launchers."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import elastic
import numpy as np
import pytest
from generated_games import write_games
from packs2048 import make_rows, write_pack
from ray_machines import machines_of_ray

import gristmill as gm

PROGRAM = Path(elastic.__file__)
HARD = gm.g2048.HardMove()


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    return write_games(tmp_path / "games", 40)


@pytest.fixture
def alone(crowd: Path, tmp_path: Path) -> Path:
    """The run of one process that is never stopped."""
    (tmp_path / "alone").mkdir()
    elastic.train(crowd, tmp_path / "alone", 20, lambda array: array)
    return tmp_path / "alone"


def environment(**more: str) -> dict[str, str]:
    """Without what says that this process is one of several."""
    said = ("RANK", "WORLD_SIZE", "XLA_FLAGS")
    return {name: value for name, value in os.environ.items() if name not in said} | more


def of_jax(crowd: Path, run: Path, until: int, world_size: int, dies: str = "") -> list[int]:
    """Starts a group of JAX processes; those that wait for one that died are ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = []
    for rank in range(world_size):
        place = {"ELASTIC_ADDRESS": address, "ELASTIC_PROCESSES": str(world_size), "ELASTIC_PROCESS": str(rank)}
        command = [sys.executable, str(PROGRAM), "jax", str(crowd), str(run), str(until)]
        started.append(subprocess.Popen(command, env=environment(ELASTIC_DIES=dies, **place)))
    if dies:
        started[int(dies.split(":")[0])].wait(120)
        for process in started:
            process.kill()
    return [process.wait(120) for process in started]


def of_torchrun(crowd: Path, run: Path, until: int, world_size: int, dies: str = "") -> list[int]:
    """Starts processes by torchrun, which ends the others where one dies."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size)]
    done = subprocess.run([*command, PROGRAM, "torch", crowd, run, str(until)], env=environment(ELASTIC_DIES=dies))
    return [done.returncode]


def of_ray(crowd: Path, run: Path, until: int, world_size: int, dies: str = "") -> list[int]:
    """Runs Ray Train on a machine of its own; where a worker dies, it ends the training."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    def worker() -> None:
        elastic.train(crowd, run, until, elastic.mean_of_torch, dies)

    trainer = TorchTrainer(
        worker,
        scaling_config=ScalingConfig(num_workers=world_size, resources_per_worker={"CPU": 0.25}),
        run_config=RunConfig(storage_path=str(run / "ray"), failure_config=FailureConfig(max_failures=0)),
    )
    trainer.fit()
    return [0]


def is_as_alone(run: Path, world_sizes: list[int], alone: Path) -> None:
    """The union of the batches, and what was learned, are those of one process."""
    expected, found = elastic.rows(alone, [1]), elastic.rows(run, world_sizes)
    assert len(expected) == len(found) == 20
    for number, (one, all_of_them) in enumerate(zip(expected, found, strict=True)):
        np.testing.assert_array_equal(one, all_of_them, f"batch {number}")
    learned, by_one = (np.load(folder / "learned" / "20.npy") for folder in (run, alone))
    np.testing.assert_allclose(learned, by_one, rtol=1e-4)  # JAX gathers them as float32.


def test_a_run_begins_and_goes_on_at_the_newest_whole_step(
    crowd: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gristmill")
    folder = tmp_path / "states" / "run"
    whole = gm.resume(folder, elastic.config(crowd))
    assert "nothing is saved" in caplog.text
    expected = [np.asarray(whole.get_next()["ids"]) for _ in range(6)]
    two = [gm.resume(folder, elastic.config(crowd), rank=rank, world_size=2) for rank in range(2)]
    for step in range(4):
        parts = [np.asarray(loader.get_next()["ids"]) for loader in two]
        np.testing.assert_array_equal(np.stack(parts, 1).reshape(24, -1), expected[step])
        for loader in two[: 1 if step == 3 else 2]:
            loader.save(folder)
    caplog.clear()
    one = gm.resume(folder, elastic.config(crowd))
    assert "from step 3, saved by 2, shared by 1; step 4 lacks rank 1 of 2" in caplog.text
    np.testing.assert_array_equal(one.get_next()["ids"], expected[3])
    one.save(folder)
    again = gm.resume(folder, elastic.config(crowd))
    np.testing.assert_array_equal(again.get_next()["ids"], expected[4])


def test_rows_resume_by_the_same_call(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(4, 25)))
    whole = [np.asarray(batch["tokens"]) for batch in gm.DataLoader(rows, encoder=HARD, batch_size=10, seed=1)]
    found = []
    for _ in range(3):
        loader = gm.resume(tmp_path / "run", rows, encoder=HARD, batch_size=10, seed=1)
        for _ in range(3):
            found.append(np.asarray(loader.get_next()["tokens"]))
            loader.save(tmp_path / "run")
        loader.get_next()  # Taken, and never saved.
    np.testing.assert_array_equal(found, whole[:9])


def test_what_cannot_be_resumed_is_refused_with_what_to_do(crowd: Path, tmp_path: Path) -> None:
    config = elastic.config(crowd)
    first = gm.resume(tmp_path / "run", config, rank=0, world_size=2)
    first.get_next()
    first.save(tmp_path / "run")
    with pytest.raises(gm.StateError, match="no step is whole: step 1 lacks rank 1 of 2; copy the missing parts"):
        gm.resume(tmp_path / "run", config)
    (tmp_path / "file").write_text("{}")
    with pytest.raises(FileExistsError):
        gm.resume(tmp_path / "file", config)
    with pytest.raises(ValueError, match="expected 'refuse', 'skip' or 'spill'"):
        gm.resume(tmp_path / "run", config, missing="maybe")  # type: ignore[arg-type]
    second = gm.resume(tmp_path / "other", config)
    second.save(tmp_path / "other")
    with pytest.raises(gm.StateError, match="reservoir"):
        gm.resume(tmp_path / "other", gm.presets.lc0(crowd, pool=24, reservoir=8, batch_size=24, seed=1, lanes=4))


def test_jax_processes_come_back_in_other_numbers(crowd: Path, tmp_path: Path, alone: Path) -> None:
    pytest.importorskip("jax")
    run = tmp_path / "run"
    run.mkdir()
    assert of_jax(crowd, run, 20, 2, dies="1:10") != [0, 0]
    assert of_jax(crowd, run, 20, 1) == [0]
    is_as_alone(run, [2, 1], alone)


def test_torchrun_comes_back_with_two_four_and_one(crowd: Path, tmp_path: Path, alone: Path) -> None:
    pytest.importorskip("torch")
    run = tmp_path / "run"
    run.mkdir()
    assert of_torchrun(crowd, run, 20, 2, dies="1:10") != [0]
    assert of_torchrun(crowd, run, 16, 4) == [0]
    assert of_torchrun(crowd, run, 20, 1) == [0]
    is_as_alone(run, [2, 4, 1], alone)


@pytest.mark.timeout(1200)  # Seven processes import PyTorch, one group after the other.
@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_train_comes_back_with_two_four_and_one(
    crowd: Path, tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.train")
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(PROGRAM.parent))
    monkeypatch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "600")  # Each imports PyTorch first.
    with machines_of_ray(2) as cluster, ray.init(address=cluster.address, log_to_driver=False):
        with pytest.raises(Exception, match="died"):
            of_ray(crowd, run, 20, 2, dies="1:10")
        of_ray(crowd, run, 16, 4)
        of_ray(crowd, run, 20, 1)
    is_as_alone(run, [2, 4, 1], alone)
