"""One loader: streams and rows answer the same calls by one rule, and take the same options."""

import inspect
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill import _gristmill

ROWS: dict[str, Any] = {"encoder": gm.g2048.Steps(), "batch_size": 48, "seed": 1}


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    return gm.open(write_pack(tmp_path / "rows", make_rows(6)))


@pytest.fixture
def makers(rows: Any, games: Path) -> dict[str, Callable[..., gm.DataLoader]]:
    def stream(**options: Any) -> gm.DataLoader:
        config = gm.presets.lc0(games, epochs=2, batch_size=16, seed=1, index="off")
        return gm.DataLoader(config, **options)

    return {"rows": lambda **options: gm.DataLoader(rows, epochs=2, **ROWS, **options), "stream": stream}


@pytest.mark.parametrize("of", ["rows", "stream"])
def test_every_loader_is_one_class_over_one_engine(makers: Any, of: str) -> None:
    loader = makers[of]()
    assert type(loader._engine) is _gristmill.Loader
    assert (loader.rank, loader.world_size, loader.seed) == (0, 1, 1)
    assert loader.vanished == []
    assert loader.oldest_needed == {}
    assert loader.source_path(1 << 40) is None
    assert set(loader.control()) <= {"pool"}
    first, second = ([batch.number for batch in loader] for _ in range(2))
    assert [*first, *second] == list(range(len(first) + len(second))), "a loop is what is left of a pass"
    assert abs(len(first) - len(second)) <= 1
    with pytest.raises(gm.EndOfStream, match=r"epochs=2"):
        next(iter(loader))
    assert loader.stop() == []


@pytest.mark.parametrize("of", ["rows", "stream"])
def test_a_pass_that_was_begun_elsewhere_ends_where_it_ends(makers: Any, of: str) -> None:
    whole = makers[of]()
    first, second = ([batch.number for batch in whole] for _ in range(2))
    for taken in (1, len(first) - 1, len(first), len(first) + 1):
        begun = makers[of]()
        for _ in range(taken):
            begun.get_next()
        left = [number for number in first if number >= taken] or [number for number in second if number >= taken]
        state = begun.state_dict()
        assert [batch.number for batch in begun] == left
        again = makers[of]()
        again.load_state_dict(state)
        assert [batch.number for batch in again] == left


def test_what_one_kind_cannot_do_says_which_kind_can(makers: Any) -> None:
    rows, stream = makers["rows"](), makers["stream"]()
    with pytest.raises(TypeError, match="only a loader of rows can go anywhere"):
        stream.seek(1)
    with pytest.raises(TypeError, match="a loader of rows has no stages"):
        _ = rows.config
    assert stream.config.stage
    assert (bool(rows.num_rows), stream.num_rows) == (True, None)
    with pytest.raises(gm.AliasError, match="`train`"):
        rows.xray(0, alias="train")
    with pytest.raises(gm.AliasError, match="`train`"):
        rows.get_next("train")


def test_an_option_has_one_default_which_is_the_engines(makers: Any) -> None:
    options = inspect.signature(gm.DataLoader).parameters
    assert {option.default for name, option in options.items() if name not in ("source", "skip")} == {None}
    for name, value in (("batch_size", 1024), ("shuffle", True), ("last_batch", "keep"), ("queue_capacity", 4)):
        with pytest.raises(TypeError, match=f"`{name}` belongs to loaders of rows"):
            makers["stream"](**{name: value})


def test_the_rank_travels_with_a_loader_of_any_kind(rows: Any, games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = gm.presets.lc0(games, batch_size=16, seed=1, index="off", lanes=2)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sent = [pickle.dumps(gm.DataLoader(config)), pickle.dumps(gm.DataLoader(rows, **ROWS))]
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    for loader in map(pickle.loads, sent):
        assert (loader.rank, loader.world_size) == (1, 2)


class TestAGameIsFound:
    """`when` leads from a game to its batches, as `xray` leads from these to the game."""

    @pytest.mark.parametrize("world_size", [1, 3])
    def test_both_ways_agree_over_two_passes(self, rows: Any, world_size: int) -> None:
        options = {**ROWS, "epochs": 2, "world_size": world_size}
        loaders = [gm.DataLoader(rows, rank=rank, **options) for rank in range(world_size)]
        fed = {}
        for rank, loader in enumerate(loaders):
            for batch in (batch for _ in range(2) for batch in loader):
                for seen in loader.xray(batch.number):
                    fed[seen["epoch"], seen["batch"], rank, seen["row"]] = seen["pack_row"]
        found = {}
        for game in range(6):
            for time in loaders[0].when(game, epochs=(0, 2))["times"]:
                assert time["fed"] == "was"
                found[time["epoch"], time["batch"], time.get("rank", 0), time["row"]] = time["pack_row"]
        assert found == fed
        last = loaders[0].when("2", 1)
        assert (last["game"], [time["ply"] for time in last["times"]]) == (2, [1, 1])

    def test_what_cannot_be_found_is_refused_by_name(self, rows: Any, makers: Any) -> None:
        loader = gm.DataLoader(rows, **ROWS)
        with pytest.raises(gm.ConfigError, match="no game 9: the pack has 6"):
            loader.when(9)
        with pytest.raises(TypeError, match="of a stream"):
            makers["stream"]().when(0)
        with pytest.raises(gm.ConfigError, match="mixes 2 packs"):
            gm.DataLoader([rows, rows], **ROWS).when(0)

    def test_a_game_of_mixed_packs_is_found_wherever_it_comes(self, rows: Any, tmp_path: Path) -> None:
        few = gm.open(write_pack(tmp_path / "few", make_rows(2)))
        loader = gm.DataLoader([rows, few], weights=[1, 3], epochs=2, **ROWS)
        fed: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for batch in (batch for _ in range(2) for batch in loader):
            for seen in loader.xray(batch.number):
                place = (seen["batch"], seen["row"], seen["ply"])
                fed.setdefault((seen["source"], seen["game"]), []).append(place)
        for source, games in ((0, 6), (1, 2)):
            for game in range(games):
                found = loader.when(game, source=source, epochs=(0, 2))
                assert found["source"] == source
                times = sorted((time["batch"], time["row"], time["ply"]) for time in found["times"])
                assert times == sorted(fed.get((source, game), []))
        assert len(fed[1, 0]) > len(loader.when(0, 0, source=1, epochs=(0, 2))["times"]) > 2, "it comes again in a pass"


class TestPacksAreMixed:
    """Several packs, or selections of packs, by weights."""

    @pytest.fixture
    def packs(self, tmp_path: Path) -> list[Any]:
        return [gm.open(write_pack(tmp_path / str(runs), make_rows(runs, seed=runs))) for runs in (6, 3)]

    @staticmethod
    def taken(batches: Iterable[gm.Batch]) -> list[list[tuple[int, int, bytes]]]:
        columns = ("run_id", "step_index", "tokens")
        rows = [zip(*(np.asarray(batch[name])[: batch.rows] for name in columns), strict=True) for batch in batches]
        return [[(int(run), int(step), tokens.tobytes()) for run, step, tokens in one] for one in rows]

    def test_a_batch_has_rows_of_each_as_often_as_weights_say(self, packs: list[Any]) -> None:
        loader = gm.DataLoader(packs, weights=[3, 1], exhausted="stop", **ROWS)
        whole = self.taken(loader)
        seen = [row for number in range(len(whole)) for row in loader.xray(number)]
        first = [row["source"] for row in seen].count(0) / len(seen)
        assert 0.65 < first < 0.85
        for number, row in ((0, 0), (0, 47), (len(whole) - 1, 3)):
            (found,) = loader.xray(number, row)
            record = packs[found["source"]].take([found["pack_row"]])
            assert (int(record["run_id"][0]), int(record["step_index"][0])) == whole[number][row][:2]
            assert found["file"].startswith(packs[found["source"]].path)
        of_one = [(row["source"], row["pack_row"]) for row in seen]
        assert len(set(of_one)) == len(of_one), "before a pack is over, each of its rows comes once"

    @pytest.mark.parametrize("exhausted", ["restart", "stop", "drop"])
    def test_batches_are_the_same_for_any_threads_and_ranks_and_resume(self, packs: list[Any], exhausted: Any) -> None:
        encoder = gm.g2048.Steps(rotate=True, flip=True)
        chosen = {"long": packs[0].where("id > 1"), "short": packs[1]}
        weights = {"short": 1.5, "long": 2.0}

        def loader(**more: Any) -> gm.DataLoader:
            options = {"encoder": encoder, "batch_size": 24, "seed": 5, "epochs": 2, "exhausted": exhausted}
            return gm.DataLoader(chosen, weights=weights, **{**options, **more})

        def whole(source: gm.DataLoader) -> list[Any]:
            return [*self.taken(source), *self.taken(source)]

        alone = whole(loader(threads=1))
        assert alone == whole(loader(threads=3))
        ranks = [whole(loader(rank=rank, world_size=2)) for rank in range(2)]
        assert [sorted([*one, *two]) for one, two in zip(*ranks, strict=True)] == [sorted(batch) for batch in alone]
        first = loader()
        for number in range(len(alone) - 1):
            assert self.taken([first.get_next()]) == [alone[number]]
            again = loader(threads=2)
            again.load_state_dict(first.state_dict())
            assert self.taken([again.get_next()]) == [alone[number + 1]]
        skipping = loader(skip=[(1, 3)])
        assert self.taken(skipping) == [batch for i, batch in enumerate(alone[: len(alone) // 2]) if i not in (1, 2)]

    def test_weights_change_from_a_batch_on(self, packs: list[Any]) -> None:
        chosen = {"long": packs[0], "short": packs[1]}
        plain = {"long": 1, "short": 1}
        changing = {0: plain, 4: {"long": 0, "short": 1}, 9: {"long": 1, "short": 0}}

        def loader(weights: Any, **more: Any) -> gm.DataLoader:
            return gm.DataLoader(chosen, weights=weights, **{"nominal_length": 48 * 6, **ROWS, **more})

        def whole(source: gm.DataLoader) -> list[Any]:
            return [*self.taken(source), *self.taken(source)]

        alone = whole(loader(changing))
        assert len(alone) == 12
        assert alone[:4] == whole(loader(plain))[:4]
        sources = [{row["source"] for row in loader(changing).xray(number)} for number in range(12)]
        assert sources == [{0, 1}] * 4 + [{1}] * 5 + [{0}] * 3
        ranks = [whole(loader(changing, rank=rank, world_size=2)) for rank in range(2)]
        assert [sorted([*one, *two]) for one, two in zip(*ranks, strict=True)] == [sorted(batch) for batch in alone]
        first = loader(changing)
        for number in range(11):
            assert self.taken([first.get_next()]) == [alone[number]]
            state = first.state_dict()
            for same in (changing, changing | {100: plain}):
                again = loader(same, threads=2)
                again.load_state_dict(state)
                assert self.taken([again.get_next()]) == [alone[number + 1]]
        with pytest.raises(gm.StateError, match="weights: saved"):
            loader(changing | {5: plain}).load_state_dict(state)

    def test_weights_that_change_to_nonsense_are_refused(self, packs: list[Any]) -> None:
        for weights, error, text in (
            ({1: [1, 1]}, gm.ConfigError, "no weights for batch 0"),
            ({0: [1, 1], -3: [1, 1]}, gm.ConfigError, "weights from batch -3 on"),
            ({0: [1, 1], 5: [1]}, gm.ConfigError, "expected one weight"),
            ({0: [1, 1], 5: [0, 0]}, gm.ConfigError, "expected one weight"),
        ):
            with pytest.raises(error, match=text):
                gm.DataLoader(packs, weights=weights, **ROWS)
        with pytest.raises(gm.ConfigError, match="leave `exhausted` out"):
            gm.DataLoader(packs, weights={0: [1, 1], 5: [2, 1]}, exhausted="stop", **ROWS)
        named = dict(zip("ab", packs, strict=True))
        with pytest.raises(TypeError, match="expected those of"):
            gm.DataLoader(named, weights={0: {"a": 1, "b": 1}, 5: {"a": 1}}, **ROWS)

    def test_a_pass_is_as_long_as_is_said(self, packs: list[Any]) -> None:
        sizes = [len(pack) for pack in packs]
        assert gm.DataLoader(packs, exhausted="restart", **ROWS).num_rows == sum(sizes)
        assert gm.DataLoader(packs, exhausted="drop", **ROWS).num_rows == sum(sizes)
        assert (gm.DataLoader(packs, exhausted="stop", **ROWS).num_rows or 0) < sum(sizes)
        assert gm.DataLoader(packs, nominal_length=1000, **ROWS).num_rows == 1000
        dropped = [row[:2] for batch in self.taken(gm.DataLoader(packs, exhausted="drop", **ROWS)) for row in batch]
        assert len(dropped) == sum(sizes)

    def test_packs_of_games_are_mixed_under_a_view(self, games: Path, tmp_path: Path) -> None:
        write_games(tmp_path / "more", 5, first=30)
        for name in ("games", "more"):
            gm.pack(tmp_path / name, tmp_path / f"{name}-pack")
        packs = [gm.open(tmp_path / f"{name}-pack") for name in ("games", "more")]
        view = gm.views.Window(1)
        loader = gm.DataLoader(packs, view=view, batch_size=16, seed=2, nominal_length=64)
        for number, batch in enumerate(loader):
            for row, found in enumerate(loader.xray(number)):
                single = gm.DataLoader(packs[found["source"]], view=view, batch_size=1, shuffle=False)
                single.seek(found["pack_row"])
                expected = single.get_next()
                for name in batch.names:
                    np.testing.assert_array_equal(np.asarray(batch[name])[row], np.asarray(expected[name])[0])
        assert {row["source"] for number in range(4) for row in loader.xray(number)} == {0, 1}

    def test_what_does_not_go_together_is_refused_by_name(self, packs: list[Any], games: Path, tmp_path: Path) -> None:
        gm.pack(games, tmp_path / "chess")
        narrow = gm.open(write_pack(tmp_path / "narrow", make_rows(2), packed=True))
        with pytest.raises(TypeError, match=r"take gristmill\.chess\.Tensors"):
            gm.DataLoader([packs[0], gm.open(tmp_path / "chess")], encoder=gm.g2048.Steps())
        with pytest.raises(gm.FormatError, match=r"source 1 has records of .*; expected the same of all"):
            gm.DataLoader([packs[0], narrow], **ROWS)
        with pytest.raises(gm.ConfigError, match="pack 1 has no rows to be fed"):
            gm.DataLoader([packs[0], packs[1].where("id < 0")], **ROWS)
        for weights in ([1], [1, -1], [0, 0]):
            with pytest.raises(gm.ConfigError, match="expected one weight of at least 0 for each source"):
                gm.DataLoader(packs, weights=weights, **ROWS)
        with pytest.raises(TypeError, match=r"weights of .*expected those of"):
            gm.DataLoader({"a": packs[0], "b": packs[1]}, weights={"a": 1}, **ROWS)
        with pytest.raises(gm.ConfigError, match="have an order of their own"):
            gm.DataLoader(packs, sampling=gm.Hanse(), **ROWS)
        with pytest.raises(TypeError, match="`weights` belongs to several sources"):
            gm.DataLoader(packs[0], weights=[1], **ROWS)
        state = gm.DataLoader(packs, weights=[1, 2], **ROWS).state_dict()
        with pytest.raises(gm.StateError, match="weights: saved"):
            gm.DataLoader(packs, weights=[2, 1], **ROWS).load_state_dict(state)
        with pytest.raises(gm.StateError, match="pack of the rows"):
            gm.DataLoader(packs[::-1], weights=[1, 2], **ROWS).load_state_dict(state)
