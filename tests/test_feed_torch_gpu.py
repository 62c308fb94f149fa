"""Feeds to a real GPU: it reads memory that the loader uses again, has few batches at once, makes the host's bits."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_games import COMPACT, FULL, every_format, same_bits, write_formats
from dense_games import dense, packed

import gristmill as gm

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
adapter: Any = pytest.importorskip("gristmill.torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="skipped: PyTorch sees no GPU here")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return packed(tmp_path_factory.mktemp("games"))


def test_memory_of_the_loader_is_pinned_once_and_read_while_it_is_used_again(games: Any) -> None:
    expected = [np.asarray(batch["planes"]).copy() for batch in dense(games)]
    fed = [batch["planes"] for batch in adapter.feed(dense(games), device="cuda", ahead=4)]
    fed += [batch["planes"] for batch in adapter.feed(dense(games), device="cuda", ahead=0)]
    per_pass = len(fed) // 2
    assert per_pass > 3
    for number, made in enumerate(fed):
        assert same_bits(made.cpu().numpy(), expected[number % per_pass])
    loader = dense(games, epochs=20)
    with torch.cuda.device(0):
        torch.cuda.current_stream().synchronize()
        addresses = set()
        for _ in range(200):
            batch = loader.get_next()
            memory = batch["planes"].memory()
            assert memory is not None
            assert memory.pin(0)
            assert torch.from_dlpack(batch["planes"]).is_pinned()
            assert torch.from_dlpack(batch["probs"]).is_pinned()
            addresses.add(batch["planes"].ctypes.data)
            del batch, memory
    assert len(addresses) < 100


def test_a_feed_that_is_dropped_in_the_middle_leaves_no_copy_behind(games: Any) -> None:
    first = np.asarray(next(iter(dense(games)))["planes"]).copy()
    for attempt in range(20):
        fed = adapter.feed(dense(games), device="cuda", ahead=3)
        kept = next(fed)["planes"]
        if attempt % 2:
            fed.close()
        del fed
        gc.collect()
        assert same_bits(kept.cpu().numpy(), first)


def test_a_process_that_never_waits_does_not_fill_the_device(games: Any) -> None:
    fed = adapter.feed(dense(games, epochs=6), device="cuda", ahead=2)
    size = sum(value.nbytes for value in fed.get_next().values())
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    for batch in fed:
        # Some ten milliseconds of a step that the process does not wait for.
        torch.cuda._sleep(20_000_000)
        batch["planes"].sum()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before < 10 * size


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_compact_tensors_become_those_of_the_host_on_the_gpu(planes: Any, tmp_path: Path) -> None:
    gm.pack(write_formats(tmp_path / "games"), tmp_path / "pack")

    def loader(tensors: list[str]) -> gm.DataLoader:
        encoder = gm.chess.Tensors(tensors, planes=planes if tensors is FULL else "f32")
        return gm.DataLoader(gm.open(tmp_path / "pack"), encoder=encoder, batch_size=32, seed=1)

    compiled = torch.compile(adapter.expand, fullgraph=True)
    count = 0
    on_gpu, on_cpu = adapter.feed(loader(COMPACT), device="cuda"), adapter.feed(loader(FULL), device="cpu")
    for batch, host in zip(on_gpu, on_cpu, strict=True):
        for way, made in (
            ("eager", adapter.expand(batch, planes=planes)),
            ("compiled", compiled(batch, planes=planes)),
        ):
            for name, tensor in host.items():
                found = made[name].cpu().contiguous()
                assert found.dtype == tensor.dtype
                assert torch.equal(found.view(torch.uint8), tensor.contiguous().view(torch.uint8)), (way, name)
        count += 1
    assert count


def test_records_of_every_format_become_those_of_the_host_on_the_gpu() -> None:
    records = every_format()
    compact = gm.chess.encode(records, tensors=COMPACT)
    made = adapter.expand({name: torch.from_dlpack(array).cuda() for name, array in compact.items()})
    for name, array in gm.chess.encode(records, tensors=FULL).items():
        assert same_bits(made[name].cpu().numpy(), array), name
