"""Loaders of 2048 whose symmetries the host draws, beside those whose symmetries a device draws, in JAX and PyTorch."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compact_games import same_bits
from katago_shards import write_shards
from order_oracle import Draws
from packs2048 import make_rows, write_pack

import gristmill as gm

LOGS = Path(__file__).parents[2] / "crates" / "gristmill-jobs" / "tests" / "data" / "drop2048"

#: Which turns and mirrors are drawn.
DRAWN: list[dict[str, Any]] = [
    {"rotate": turns, "flip": mirrors} for turns, mirrors in itertools.product((False, True, "changed"), repeat=2)
]
ENCODERS: list[Any] = [gm.g2048.Steps, gm.g2048.HardMove, gm.g2048.BinnedEV]

Expand = Callable[[Any], dict[str, Any]]
Make = Callable[[str], gm.DataLoader]


def drawn_by(draw: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options of an encoder by where it draws: tokens of the host, any form of a board for a device."""
    return options | ({"board": "tokens"} if draw == "host" else {"draw": draw})


def pairs(folder: Path) -> Iterator[tuple[str, Make]]:
    """What is loaded, and a loader of it by where it draws."""
    rows = gm.open(write_pack(folder / "pack", make_rows(7)))

    def of(encoder: Any, options: dict[str, Any], **given: Any) -> Make:
        given = {"batch_size": 48, "seed": 9, "epochs": 2, "joined": True} | given
        return lambda draw: gm.DataLoader(rows, encoder=encoder(**drawn_by(draw, options)), **given)

    for encoder, board in itertools.product(ENCODERS, ("nibbles", "tokens")):
        options = {"board": board, "dtype": "i32", "rotate": True, "flip": True}
        yield f"{encoder.__name__}, {board}", of(encoder, options)
    for drawn in DRAWN:
        yield f"{drawn}", of(gm.g2048.HardMove, {"board": "nibbles", "dtype": "i32", **drawn})
    few = {"board": "nibbles", "dtype": "i32", "rotate": True, "flip": "changed"}
    yield "padded", of(gm.g2048.HardMove, few, last_batch="pad", epochs=1)
    for view in (gm.views.NextStep(2), gm.views.Window(past=3, pad="zero")):
        yield f"{view}", of(gm.g2048.HardMove, few, view=view)
    for rank in range(3):
        yield f"rank {rank} of 3", of(gm.g2048.HardMove, few, rank=rank, world_size=3)

    both = {"board": "nibbles", "dtype": "i32", "rotate": True, "flip": True}

    def stream(draw: str) -> gm.DataLoader:
        config = gm.presets.lc0(LOGS, pool=50, position_count=2, reservoir=5, batch_size=12, seed=7, watch=False)
        stages = [stage.tensor_generator for stage in config.stage if stage.tensor_generator is not None]
        stages[0].tensors = []
        stages[0].encoder = gm.g2048.HardMove(**drawn_by(draw, both)).to_config()
        return gm.DataLoader(config)

    yield "a stream", stream
    yield from images(folder)


def images(folder: Path) -> Iterator[tuple[str, Make]]:
    """The same of rows of KataGo: of every axes, by rows and by blocks, and of a frame of 9 points."""
    made = [
        "planes",
        "policy",
        "values",
        "binaryInputNCHWPacked",
        "policyTargetsNCMove",
        "valueTargetsNCHW",
        "globalInputNC",
    ]
    for edge, rows in ((19, [70, 50]), (9, [60])):
        write_shards(folder / f"shards{edge}", rows, edge=edge)
        gm.pack(folder / f"shards{edge}", folder / f"go{edge}")
    for edge, names, given in (
        (19, made, {"epochs": 2}),
        (19, ["planes:u8", *made[1:]], {"shuffle": gm.Blocks(16, 2)}),
        (9, made, {"epochs": 2}),
    ):
        games = gm.open(folder / f"go{edge}", expect=gm.Games)

        def make(
            draw: str, games: Any = games, names: list[str] = names, given: dict[str, Any] = given
        ) -> gm.DataLoader:
            drawn = "symmetry" if draw == "host" else "image_draws"
            return gm.DataLoader(games, encoder=gm.Fields([*names, drawn]), batch_size=8, seed=3, **given)

        yield f"Go, {edge} points, {given}", make


def same_batches(host: gm.DataLoader, device: gm.DataLoader, expand: Expand, name: str, most: int = 10**6) -> int:
    """Compares every batch of two loaders; how many there were."""
    count = 0
    for expected, batch in itertools.islice(zip(host, device, strict=True), most):
        assert any(part.endswith("_draws") for part in batch.names) or "False, 'flip': False" in name
        made = expand(batch)
        assert sorted(made) == sorted(expected.names), name
        for part in expected.names:
            assert same_bits(made[part], expected[part]), f"{name}: {part} of batch {count}"
        count += 1
    return count


def check_every_batch(folder: Path, expand: Expand) -> None:
    for name, make in pairs(folder):
        with make("host") as host, make("device") as device:
            assert same_batches(host, device, expand, name, 30) > 4


def check_a_resumed_run(folder: Path, expand: Expand) -> None:
    rows = gm.open(write_pack(folder / "pack", make_rows(7)))

    def make(draw: str) -> gm.DataLoader:
        options = {"board": "nibbles", "dtype": "i32", "rotate": True, "flip": True}
        encoder = gm.g2048.HardMove(**drawn_by(draw, options))
        return gm.DataLoader(rows, encoder=encoder, batch_size=32, seed=4, epochs=3, joined=True)

    with make("host") as host, make("device") as device:
        whole = list(host)
        before = same_batches(iter(whole[:9]), device, expand, "before", 9)  # type: ignore[arg-type]
        state = device.state_dict()
    later = make("device")
    later.load_state_dict(state)
    with later:
        rest = list(later)
    assert before + len(rest) == len(whole)
    for batch, expected in zip(rest, whole[before:], strict=True):
        assert all(same_bits(array, expected[name]) for name, array in expand(batch).items())


def drawn_words() -> tuple[np.ndarray[Any, Any], list[tuple[int, int]]]:
    """Rows of `symmetry_draws` of odd keys, numbers and places, and the turns and mirror that the page says."""
    rng = np.random.default_rng(8)
    rows, expected = [], []
    edges = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
    for i in range(600):
        key = edges[i % 6] if i < 60 else int(rng.integers(0, 2**64, dtype=np.uint64))
        number = edges[i // 6 % 6] if i < 60 else int(rng.integers(0, 2**64, dtype=np.uint64))
        pairs_before, how = i % 5, i % 9
        draws = Draws(key, number)
        bits = [draws.bits() for _ in range(pairs_before + 1)][-1]
        low, high = bits & 0xFFFFFFFF, bits >> 32
        turns = [0, low * 4 >> 32, 1 + (low * 3 >> 32)][how % 3]
        mirror = [0, high * 3 >> 32, 1 + (high * 2 >> 32)][how // 3]
        words = [key & 0xFFFFFFFF, key >> 32, number & 0xFFFFFFFF, number >> 32, 2 * pairs_before, how]
        rows.append(words)
        expected.append((turns, mirror))
    return np.array(rows, np.uint32).view(np.int32), expected


def check_draws_by_the_page(expand: Expand) -> None:
    draws, expected = drawn_words()
    boards = np.tile(np.arange(16, dtype=np.int32), (len(draws), 1))
    made = np.asarray(expand({"tokens": boards, "symmetry_draws": draws})["tokens"])
    for found, (turns, mirror) in zip(made, expected, strict=True):
        board = np.rot90(np.arange(16).reshape(4, 4), -turns)
        np.testing.assert_array_equal(found.reshape(4, 4), [board, board[:, ::-1], board[::-1]][mirror])
