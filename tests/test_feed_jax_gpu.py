"""Feeds of JAX to a real GPU: it reads memory that the loader uses again, has few batches, makes the host's bits."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_games import COMPACT, FULL, same_bits, write_formats
from dense_games import dense, packed

import gristmill as gm
from gristmill.frameworks.ahead import pin

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
adapter: Any = pytest.importorskip("gristmill.jax")
pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="skipped: JAX sees no GPU here")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return packed(tmp_path_factory.mktemp("games"))


def on_mesh() -> Any:
    mesh = jax.sharding.Mesh(np.array(jax.devices("gpu")[:1]), ("data",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))


def test_memory_of_the_loader_is_pinned_and_read_while_it_is_used_again(
    games: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned: list[int] = []

    def noted(batch: Any, device: int) -> None:
        pinned.append(device)
        pin(batch, device)

    monkeypatch.setattr("gristmill.frameworks.feed_jax.pin", noted)
    expected = [np.asarray(batch["planes"]).copy() for batch in dense(games)]
    for options in ({"ahead": 4}, {"ahead": 0}, {"sharding": on_mesh()}, {"sharding": jax.devices("gpu")[0]}):
        # Nothing waits for a copy before the loader has filled what it has for all batches.
        fed = [batch["planes"] for batch in adapter.feed(dense(games), **options)]
        assert len(fed) == len(expected) > 3
        assert pinned == [0] * len(fed), "each batch, by the first GPU"
        pinned.clear()
        assert all(same_bits(np.asarray(made), wanted) for made, wanted in zip(fed, expected, strict=True)), options
    loader = dense(games)
    memory, another = loader.get_next()["planes"].memory(), dense(games).get_next()["planes"].memory()
    assert memory is not None
    assert another is not None
    assert memory.pin(0)
    assert not another.pin(99), "no such GPU"


def test_a_feed_that_is_dropped_in_the_middle_leaves_no_copy_behind(games: Any) -> None:
    first = np.asarray(next(iter(dense(games)))["planes"]).copy()
    for attempt in range(20):
        fed = adapter.feed(dense(games), ahead=3)
        kept = next(fed)["planes"]
        if attempt % 2:
            fed.close()
        del fed
        gc.collect()
        assert same_bits(np.asarray(kept), first)


def test_a_process_that_never_waits_does_not_fill_the_device(games: Any) -> None:
    device = jax.devices("gpu")[0]

    def long(weights: Any, planes: Any) -> Any:
        # Some tens of milliseconds, for which the process does not wait.
        return jax.lax.fori_loop(0, 200, lambda _, found: (found @ found) * 1e-3, weights) + planes.mean()

    step: Any = jax.jit(long)
    weights = jax.block_until_ready(jax.numpy.zeros((4096, 4096), jax.numpy.bfloat16))
    fed = adapter.feed(dense(games, epochs=12), ahead=2)
    size = sum(value.nbytes for value in fed.get_next().values())
    weights = jax.block_until_ready(step(weights, fed.get_next()["planes"]))
    before, most = device.memory_stats()["bytes_in_use"], 0
    for batch in fed:
        weights = step(weights, batch["planes"])
        most = max(most, device.memory_stats()["bytes_in_use"])
    jax.block_until_ready(weights)
    assert most - before < 10 * size + 4 * weights.nbytes


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_compact_tensors_become_those_of_the_host_on_the_gpu(planes: Any, tmp_path: Path) -> None:
    gm.pack(write_formats(tmp_path / "games"), tmp_path / "pack")

    def loader(tensors: list[str]) -> gm.DataLoader:
        encoder = gm.chess.Tensors(tensors, planes=planes if tensors is FULL else "f32")
        return gm.DataLoader(gm.open(tmp_path / "pack"), encoder=encoder, batch_size=32, seed=1)

    compiled = jax.jit(lambda batch: adapter.expand(batch, planes=planes))
    count = 0
    for batch, host in zip(adapter.feed(loader(COMPACT)), loader(FULL), strict=True):
        made = compiled(batch)
        for name, array in host.items():
            assert same_bits(np.asarray(made[name]), np.asarray(array)), name
        count += 1
    assert count
