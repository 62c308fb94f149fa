"""Passes of a stream: each loop over `epochs=N` ends with the batch that completes the rows of its pass."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from generated_games import write_games

import gristmill as gm

EPOCHS = 3
#: Positions of the games.
ROWS = 252


def stream(games: Any, batch_size: int = 16, reservoir: int = 40, **options: Any) -> gm.DataLoader:
    options = {"epochs": EPOCHS, "sampling_rate": 1.0, "tensors": ["ids"], "index": "off", "seed": 1, **options}
    return gm.DataLoader(gm.presets.lc0(games, batch_size=batch_size, reservoir=reservoir, **options))


def ids(batches: Any) -> list[list[Any]]:
    return [batch["ids"].tolist() for batch in batches]


def taken(loader: gm.DataLoader) -> list[list[Any]]:
    """All batches, one after the other, without loops."""
    found = []
    while True:
        try:
            found.append(loader.get_next()["ids"].tolist())
        except gm.EndOfStream:
            return found


def borders(rows: int, batch_size: int, epochs: int = EPOCHS) -> list[int]:
    """The batch after each pass."""
    return [-(-rows * (epoch + 1) // batch_size) for epoch in range(epochs)]


@pytest.mark.parametrize("reservoir", [1, 40, 300, 5000])
@pytest.mark.parametrize("batch_size", [16, 63, 252, 250])
def test_each_loop_over_a_stream_is_a_pass(games: Path, batch_size: int, reservoir: int) -> None:
    whole = taken(stream(games, batch_size, reservoir))
    assert sum(len(batch) for batch in whole) == EPOCHS * ROWS
    for threads in (1, 4):
        loader, first = stream(games, batch_size, reservoir, threads=threads), 0
        for end in borders(ROWS, batch_size):
            assert ids(loader) == whole[first:end], "the batches are those of a loop over all passes"
            first = end
        assert first == len(whole)
        for _ in range(2):
            with pytest.raises(gm.EndOfStream, match=r"\(epochs=3\).*larger epochs="):
                list(loader)


def test_a_pass_without_a_batch_of_its_own_ends_with_that_of_another(games: Path) -> None:
    loader = stream(games, 600)
    assert [len(batch) for batch in ids(loader)] == [600]
    assert [len(batch) for batch in ids(loader)] == [EPOCHS * ROWS - 600]
    with pytest.raises(gm.EndOfStream):
        list(loader)


@pytest.mark.parametrize("reservoir", [1, 40, 600])
def test_a_state_at_every_batch_resumes_its_pass(games: Path, reservoir: int) -> None:
    whole = taken(stream(games, 24, reservoir))
    ends = borders(ROWS, 24)
    first = stream(games, 24, reservoir)
    for at in range(1, len(whole)):
        first.get_next()
        again = stream(games, 24, reservoir, threads=1)
        again.load_state_dict(json.loads(json.dumps(first.state_dict())))
        begin = at
        for end in ends:
            if end > at:
                assert ids(again) == whole[begin:end]
                begin = end
        with pytest.raises(gm.EndOfStream):
            list(again)


def test_a_loop_that_breaks_off_goes_on_with_what_is_left(games: Path) -> None:
    whole, end = taken(stream(games)), borders(ROWS, 16)[0]
    for at in (1, end - 1, end):
        loader = stream(games)
        batches = iter(loader)
        assert [next(batches)["ids"].tolist() for _ in range(at)] == whole[:at]
        del batches
        rest = end if at < end else borders(ROWS, 16)[1]
        assert ids(loader) == whole[at:rest]


def test_a_pass_whose_last_batch_is_left_out_ends_with_the_next(games: Path) -> None:
    ends = borders(ROWS, 16)
    config = gm.presets.lc0(
        games, epochs=EPOCHS, batch_size=16, reservoir=40, sampling_rate=1.0, tensors=["ids"], index="off", seed=1
    )
    loader = gm.DataLoader(config, skip=[(ends[0] - 2, ends[0] + 1)])
    assert [b.number for b in loader] == [*range(ends[0] - 2), ends[0] + 1]
    assert [b.number for b in loader] == [*range(ends[0] + 2, ends[1])]


def test_bad_games_and_draws_within_games_end_passes_at_the_same_batch_each_time(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 12)
    bad = sorted(games.iterdir())[-1]
    bad.write_bytes(bad.read_bytes()[:-30])
    found = []
    for threads in (1, 4):
        loader = stream(games, sampling_rate=0.5, threads=threads)
        found.append([ids(loader) for _ in range(EPOCHS)])
        assert [batch for one in found[-1] for batch in one] == taken(stream(games, sampling_rate=0.5))
        assert all(found[-1])
    assert found[0] == found[1]


def test_joined_inputs_have_no_passes_and_one_loop_takes_all(tmp_path: Path) -> None:
    folders = {write_games(tmp_path / name, 6): 1.0 for name in ("one", "two")}
    loader, whole = stream(folders), taken(stream(folders))
    assert ids(loader) == whole
    with pytest.raises(gm.EndOfStream, match="epochs="):
        list(loader)


def test_threads_that_share_a_pass_all_end_with_it(games: Path) -> None:
    loader, found, together = stream(games, 4), [], threading.Barrier(4)
    whole = taken(stream(games, 4))

    def consume() -> None:
        batches = loader.batches()
        found.append(next(batches))
        together.wait(60)
        found.extend(batches)

    workers = [threading.Thread(target=consume) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    ends = borders(ROWS, 4)
    assert ids(sorted(found, key=lambda batch: batch.number)) == whole[: ends[0]]
    assert ids(loader) == whole[ends[0] : ends[1]]
