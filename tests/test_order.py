"""The order of rows and streams, against a second implementation that was written from the pages about it alone."""

import itertools
import json
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import order_oracle as oracle
import pytest
from generated_games import game, write_games, write_gz, write_tar
from packs2048 import make_rows, write_pack

import gristmill as gm

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "format" / "order.md"
#: Logs of a few games of 2048.
LOGS = ROOT / "crates" / "gristmill-jobs" / "tests" / "data" / "drop2048"
#: Surprises weigh, and a frame without a value of its own weighs a quarter.
RULE = gm.PositionSamplingConfig(diff_focus_q_weight=6.0, diff_focus_pol_scale=3.5, default_weight=0.25)


def weights_of(records: Any) -> list[float]:
    """What frames weigh by `RULE`: the published formula in single precision."""
    one = np.float32
    difference = one(6) * np.abs(records["best_q"] - records["orig_q"]) + records["policy_kld"]
    return [float(weight) for weight in np.minimum(difference / one(9.5), one(1))]


def test_the_vectors_of_the_page_are_what_it_says() -> None:
    key, chunk = oracle.key_of(42, "pool"), oracle.Chunk(10)
    own = oracle.key_of(42, "unpack").of("training.1.gz", 0)
    tar = oracle.File("a.tar", [oracle.Chunk(10) for _ in range(5)])
    single = oracle.Source([oracle.File("a.gz", [chunk])], rate=1.0)
    weighted = oracle.Weighted(42, [[0, 1, 2], [3], [4, 5]], {row: float(row) for row in range(6)})

    def several(name: str, *arguments: Any, n: int) -> list[Any]:
        draws = key.at(7)
        return [getattr(draws, name)(*arguments) for _ in range(n)]

    found = {
        "key": key.value,
        'key.of("epoch", 3)': key.of("epoch", 3).value,
        "bits of key.at(7)": several("bits", n=3),
        "below(1000) of key.at(7)": several("below", 1000, n=6),
        "below(12297829382473034411) of key.at(7)": several("below", 12297829382473034411, n=6),
        "unit of key.at(7)": key.at(7).unit(),
        "choice(0.5, 0, 3, 1.5) of key.at(0) to key.at(9)": [key.at(i).choice([0.5, 0, 3, 1.5]) for i in range(10)],
        "perm(key, 5)": [oracle.Perm(key, 5)(i) for i in range(5)],
        "perm(key, 1000000)": [oracle.Perm(key, 1_000_000)(i) for i in range(5)],
        "rows 0 to 22, epoch 1": oracle.epoch_order(42, 23, 1, "rows"),
        "the same in blocks of 4, 2 together": oracle.epoch_order(42, 23, 1, (4, 2)),
        "bits of row 5 in epoch 1": oracle.Rows(42, [], 1).bits(5, 1),
        "three of 10 frames of training.1.gz by unpack, uses 0 to 3": [
            oracle.Source([], count=3).frames(own, chunk, use) for use in range(4)
        ],
        "0.4 of them, uses 0 to 3": [oracle.Source([], rate=0.4).frames(own, chunk, use) for use in range(4)],
        "a pool of 5 chunks, 12 draws": [
            number for _, number, _ in itertools.islice(oracle.Source([tar], pool=5, count=1).draws(42, 1, 0), 12)
        ],
        "frames 0 to 9 through a reservoir of 4": [
            row[2] for row in oracle.Stream(42, [single], 1, reservoir=4).rows()
        ],
        "games of 3, 1 and 2 rows of weights 0 to 5, draws 0 to 9": [weighted.draw(i)[0] for i in range(10)],
    }
    block = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    assert found == json.loads(block[1])


# Rows of a pack.


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> gm.Rows:
    pack = gm.open(write_pack(tmp_path_factory.mktemp("rows") / "pack", make_rows(7)))
    assert isinstance(pack, gm.Rows)
    return pack


#: A selection with gaps, as numbers of rows: runs have 30 to 34 rows.
RUNS = [range(start, start + 30 + run % 5) for run, start in enumerate(np.cumsum([0, 30, 31, 32, 33, 34, 30]).tolist())]
SELECTED = [row for run in (RUNS[0], RUNS[2], RUNS[3], RUNS[6]) for row in run]


def selection(rows: gm.Rows) -> gm.Rows:
    return rows.where("id IN (0, 2, 3, 6)")


def boards(rows: gm.Rows, numbers: list[int]) -> Any:
    return np.asarray(rows.take(numbers)["board"])


def shown(batch: gm.Batch) -> Any:
    """Exponents of a batch as boards."""
    return np.array(batch["tokens"]).reshape(batch.rows, -1)


def expected_boards(rows: gm.Rows, numbers: list[int]) -> Any:
    return np.asarray(rows.encode(gm.g2048.HardMove(), numbers)["tokens"]).reshape(len(numbers), -1)


@pytest.mark.parametrize("shuffle", ["rows", "off", (8, 3), (1000, 1), (5, 100)])
def test_rows_stand_where_the_page_says(rows: gm.Rows, shuffle: Any) -> None:
    option: Any = {"rows": True, "off": False}.get(shuffle) if isinstance(shuffle, str) else gm.Blocks(*shuffle)
    for rank, world in ((0, 1), (1, 3)):
        plan = oracle.Rows(9, SELECTED, 24, shuffle, epochs=3, rank=rank, world=world)
        options: dict[str, Any] = {
            "encoder": gm.g2048.HardMove(),
            "batch_size": 24,
            "epochs": 3,
            "joined": True,
            "seed": 9,
            "shuffle": option,
        }
        with gm.DataLoader(selection(rows), rank=rank, world_size=world, **options) as loader:
            batches = list(loader)
        assert len(batches) == -(-3 * len(SELECTED) // 24)
        for k, batch in enumerate(batches):
            expected = [row for row, _ in plan.rows(k)]
            np.testing.assert_array_equal(shown(batch), expected_boards(rows, expected), err_msg=f"batch {k}")


def named(augmentation: Any) -> str:
    return str({False: "off", True: "any"}.get(augmentation, augmentation))


def test_turns_and_mirrors_are_drawn_as_the_page_says(rows: gm.Rows) -> None:
    augmentations: list[tuple[Any, Any]] = [(True, True), ("changed", False), (False, "changed")]
    for rotate, flip in augmentations:
        plan = oracle.Rows(5, SELECTED, 16, epochs=2)
        encoder = gm.g2048.HardMove(rotate=rotate, flip=flip)
        with gm.DataLoader(selection(rows), encoder=encoder, batch_size=16, epochs=2, joined=True, seed=5) as loader:
            for k, batch in enumerate(loader):
                for (row, epoch), found in zip(plan.rows(k), shown(batch), strict=True):
                    turns, mirror = oracle.turns_and_mirror(plan.bits(row, epoch), *map(named, (rotate, flip)))
                    board = np.rot90(expected_boards(rows, [row]).reshape(4, 4), -turns)
                    board = [board, board[:, ::-1], board[::-1]][mirror]
                    np.testing.assert_array_equal(found.reshape(4, 4), board)


def test_views_have_the_rows_that_the_page_says(rows: gm.Rows) -> None:
    part = rows.filter(step_index=(3, 20))
    chosen = [row for run in RUNS for row in run[3:21]]
    views: list[tuple[Any, list[int]]] = [
        (gm.views.Window(past=5, future=2, pad="drop"), oracle.whole_windows(chosen, RUNS, range(-5, 3))),
        (gm.views.Window(past=5, pad="zero"), chosen),
        (gm.views.NextStep(14, pad="drop"), oracle.whole_windows(chosen, RUNS, [14])),
        (gm.views.Trajectory(12, longer="split"), oracle.trajectories(chosen, RUNS, 12, split=True)),
        (
            gm.views.Trajectory(12, longer="split", pad="drop"),
            oracle.trajectories(chosen, RUNS, 12, split=True, full=True),
        ),
        (gm.views.Trajectory(9, longer="cut"), oracle.trajectories(chosen, RUNS, 9)),
    ]
    for view, epoch in views:
        plan = oracle.Rows(3, epoch, 8)
        with gm.DataLoader(part, encoder=gm.g2048.HardMove(), view=view, batch_size=8, seed=3) as loader:
            batches = list(loader)
        assert sum(batch.rows for batch in batches) == len(epoch), view
        at = view.past if isinstance(view, gm.views.Window) else 0
        for k, batch in enumerate(batches):
            found = np.array(batch["tokens"])
            own = found if isinstance(view, gm.views.NextStep) else found[:, at]
            expected = expected_boards(rows, [row for row, _ in plan.rows(k)])
            np.testing.assert_array_equal(own.reshape(batch.rows, -1), expected, err_msg=str(view))


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loose games, a tar with 9 games, and a folder below; some games have no surprises to weigh."""
    folder = tmp_path_factory.mktemp("games")
    write_games(folder, 9, plies=5)
    write_games(folder / "below", 4, first=20, plies=11)
    write_tar(folder / "games.100.tar", {f"d/training.{n}.gz": game(n, 4 + n % 7) for n in range(100, 109)})
    calm = game(30, 8)
    calm["policy_kld"], calm["orig_q"] = 0, calm["best_q"]
    write_gz(folder / "training.30.gz", calm)
    return folder


@pytest.fixture(scope="module")
def packed(games: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed") / "pack"
    gm.pack(games, folder)
    return folder


@pytest.mark.parametrize("form", ["weight", "length"])
@pytest.mark.parametrize("positions", ["weighted", "uniform"])
def test_draws_by_weight_are_those_of_the_page(packed: Path, form: Any, positions: Any) -> None:
    pack = gm.open(packed)
    assert isinstance(pack, gm.Games)
    lengths = [pack.frames(i) for i in range(pack.num_games)]
    starts = np.cumsum([0, *lengths]).tolist()
    weights = dict(enumerate(weights_of(np.asarray(pack.take(np.arange(pack.num_frames))))))
    chosen = [list(range(start, start + n)) for start, n in zip(starts, lengths, strict=False)][2:20]
    threshold = 9 if form == "length" else None
    plan = oracle.Weighted(8, chosen, weights, form, threshold, 1.0, positions == "weighted")
    sampling = gm.Hanse(form=form, threshold=threshold, positions=positions, position_sampling=RULE)
    encoder = gm.chess.Tensors(["best_q"])
    stored = np.asarray(pack.encode(np.arange(pack.num_frames), encoder)["best_q"])
    assert len(np.unique(stored, axis=0)) == len(stored)
    options: dict[str, Any] = {
        "encoder": encoder,
        "batch_size": 20,
        "seed": 8,
        "sampling": sampling,
        "last_batch": "drop",
    }
    with gm.DataLoader(pack.games[2:20], rank=1, world_size=2, epochs=4, joined=True, **options) as loader:
        for k, batch in enumerate(loader):
            expected = [plan.draw(k * 20 + i * 2 + 1)[0] for i in range(10)]
            np.testing.assert_array_equal(batch["best_q"], stored[expected], err_msg=f"batch {k}")


# Streams.


def files_of(folder: Path) -> list[oracle.File]:
    """What lies below a folder, as the page counts it."""
    found = []
    for path in sorted(folder.rglob("*.*")):
        if path.suffix not in (".gz", ".tar", ".chunks"):
            continue
        source = gm.open(path)
        chunks = []
        for i in range(len(source)):
            member = source.member(i) if path.suffix != ".gz" else None
            records = np.asarray(source[i])
            chunks.append(oracle.Chunk(len(records), member, weights_of(records)))
        found.append(oracle.File(path.relative_to(folder).as_posix(), chunks))
    return found


def places(loader: gm.DataLoader, alias: str = "") -> Iterator[oracle.Place]:
    while True:
        try:
            batch = loader.get_next(alias, timeout=60)
        except gm.EndOfStream:
            return
        for source, chunk, frame in batch["ids"][: batch.rows].tolist():
            name = loader.source_path(source)
            assert name
            yield name, chunk, frame


OPTIONS: dict[str, Any] = {"index": "off", "watch": False, "tensors": ["ids"], "batch_size": 12, "seed": 77}


def compare(config: gm.DataLoaderConfig, stream: Iterable[oracle.Place], alias: str = "", n: int = 500) -> None:
    with gm.DataLoader(config) as loader:
        found = list(itertools.islice(places(loader, alias), n))
    assert found == list(itertools.islice(stream, n))


def stage(config: gm.DataLoaderConfig, name: str) -> Any:
    [found] = [stage for stage in config.stage if stage.name == name]
    return found


def test_a_pool_a_rate_and_a_reservoir(games: Path) -> None:
    for pool, rate, reservoir in ((1000, 0.3, 40), (13, 0.07, 0), (5, 1.0, 7), (1000, 0.8, 0)):
        config = gm.presets.lc0(games, pool=pool, sampling_rate=rate, reservoir=reservoir, **OPTIONS)
        source = oracle.Source(files_of(games), pool=pool, rate=rate)
        compare(config, oracle.Stream(77, [source], 12, reservoir=reservoir).rows())


@pytest.mark.parametrize("order", ["natural", "bytes"])
def test_counts_orders_and_stages_of_other_names(games: Path, order: Any) -> None:
    config = gm.presets.lc0(games, pool=12, position_count=3, reservoir=16, **OPTIONS)
    stage(config, "pool").shuffling_chunk_pool.key_order = order
    for number, name in enumerate(("pool", "unpack", "sample", "tensors")):
        stage(config, name).name = f"{name}-{number}"
    for one in config.stage:
        one.input = [
            re.sub(r"^(pool|unpack|sample)$", lambda m: f"{m[0]}-{('pool', 'unpack', 'sample').index(m[0])}", name)
            for name in one.input
        ]
    config.output = ["tensors-3"]
    source = oracle.Source(files_of(games), "pool-0", 12, order=order, unpack="unpack-1", count=3)
    compare(config, oracle.Stream(77, [source], 12, reservoir=16, sample="sample-2").rows())


def test_lanes_and_ranks(games: Path) -> None:
    source = oracle.Source(files_of(games), pool=15, rate=0.4)
    stream = oracle.Stream(77, [source], 12, reservoir=10, lanes=4)
    config = gm.presets.lc0(games, pool=15, sampling_rate=0.4, reservoir=10, lanes=4, **OPTIONS)
    compare(config, stream.rows())
    for rank in range(2):
        config = gm.presets.lc0(
            games, pool=15, sampling_rate=0.4, reservoir=10, lanes=4, rank=rank, world_size=2, **OPTIONS
        )
        compare(config, itertools.islice(stream.rows(), rank, None, 2), n=240)


@pytest.mark.parametrize("by", ["name", "file"])
def test_sides_of_loose_tarred_and_packed_games(games: Path, packed: Path, by: Any) -> None:
    for folder in (games, packed):
        for side, alias in enumerate(("train", "test")):
            options = {
                "split": {"train": 2, "test": 1},
                "split_by": by,
                "pool": 9,
                "reservoir": 0,
                "sampling_rate": 0.5,
            }
            config = gm.presets.lc0(folder, **options, **OPTIONS)
            source = oracle.Source(
                files_of(folder), f"pool_{alias}", 9, unpack=f"unpack_{alias}", rate=0.5, split=((2, 1), side, by)
            )
            compare(config, oracle.Stream(77, [source], 12).rows(), alias)


@pytest.mark.parametrize("exhausted", ["drop", "restart", "stop"])
def test_joins_of_passes_and_their_ends(games: Path, exhausted: Any) -> None:
    below = games / "below"
    config = gm.presets.lc0({games: 0.75, below: 0.5}, epochs=2, reservoir=9, sampling_rate=1.0, **OPTIONS)
    stage(config, "join").join_positions.exhausted = exhausted
    stage(config, "extract_2").simple_chunk_extractor.order = "shuffled"
    sources = [
        oracle.Source(files_of(games), "extract", epochs=2, rate=1.0),
        oracle.Source(files_of(below), "extract_2", epochs=2, shuffled=True, unpack="unpack_2", rate=1.0),
    ]
    stream = oracle.Stream(77, sources, 12, [0.75, 0.5], exhausted, reservoir=9)

    with gm.DataLoader(config) as loader:
        found = list(itertools.islice(places(loader), 700))
    assert found == list(itertools.islice(stream.rows(), 700))
    assert exhausted == "restart" or len(found) < 700


@pytest.mark.parametrize("form", ["weight", "length"])
def test_hanse_sampling_with_and_without_a_cache(games: Path, form: Any) -> None:
    for gamma, weighted in ((1.0, False), (1.0, True)):
        config = gm.presets.lc0(games, pool=14, position_count=1, reservoir=8, **OPTIONS)
        pool, unpacker = stage(config, "pool").shuffling_chunk_pool, stage(config, "unpack").chunk_unpacker
        pool.hanse_sampling_threshold, pool.hanse_sampling_form, pool.hanse_sampling_gamma = 9, form, gamma
        pool.position_sampling = RULE
        unpacker.position_sampling = RULE if weighted else None
        threshold = 9 if form == "length" else None
        source = oracle.Source(files_of(games), pool=14, count=1, weighted=weighted, hanse=(form, gamma, threshold))
        stream = oracle.Stream(77, [source], 12, reservoir=8)
        compare(config, stream.rows())
        pool.position_cache_size, pool.cachehit_output = 20, gm.QueueConfig("hits")
        unpacker.prefetch_count, unpacker.prefetch_output = 4, gm.QueueConfig("ahead")
        stage(config, "pool").input.append("unpack.ahead")
        stage(config, "sample").input = ["both"]
        config.stage.append(gm.StageConfig("both", ["unpack", "pool.hits"], join_positions=gm.JoinPositionsConfig()))
        compare(config, stream.rows())


def test_what_arrives_is_taken_in_where_the_journal_says(tmp_path: Path) -> None:
    folder, journal = write_games(tmp_path / "games", 8, plies=6), tmp_path / "run.journal"
    first = files_of(folder)
    options = OPTIONS | {"watch": True, "pool": 9, "sampling_rate": 0.5, "reservoir": 20, "journal": journal}
    with gm.DataLoader(gm.presets.lc0(folder, **options)) as loader:
        rows = places(loader)
        found: list[oracle.Place] = []
        found += itertools.islice(rows, 120)
        write_tar(tmp_path / "later.tar", {f"training.{n}.gz": game(n, 7) for n in range(50, 54)})
        (tmp_path / "later.tar").rename(folder / "training.90.tar")
        until = time.monotonic() + 60
        while '"admit"' not in journal.read_text() and time.monotonic() < until:
            found += itertools.islice(rows, 12)
        found += itertools.islice(rows, 600)
    admitted = [json.loads(line[17:])["admit"] for line in journal.read_text().splitlines() if '"admit"' in line]
    later = {file.name: file for file in files_of(folder)}
    source = oracle.Source(
        first, pool=9, rate=0.5, later=[(admit["at"], later[admit["file"]["name"]]) for admit in admitted]
    )
    assert found == list(itertools.islice(oracle.Stream(77, [source], 12, reservoir=20).rows(), len(found)))
    assert admitted
    assert any(name == "training.90.tar" for name, _, _ in found)


def test_rows_of_a_stream_are_turned_as_the_page_says() -> None:
    def boards(encoder: dict[str, Any]) -> Any:
        config = gm.presets.lc0(LOGS, pool=50, position_count=2, reservoir=5, **(OPTIONS | {"tensors": []}))
        stage(config, "tensors").tensor_generator.encoder = {"g2048": {"target": "hard_move", **encoder}}
        with gm.DataLoader(config) as loader:
            return np.concatenate([np.array(loader.get_next(timeout=60)["tokens"]).reshape(-1, 4, 4) for _ in range(9)])

    stream = oracle.Stream(77, [], 12)
    for g, (plain, shown) in enumerate(zip(boards({}), boards({"rotate": "any", "flip": "any"}), strict=True)):
        turns, mirror = oracle.turns_and_mirror(stream.bits(g), "any", "any")
        board = np.rot90(plain, -turns)
        np.testing.assert_array_equal(shown, [board, board[:, ::-1], board[::-1]][mirror], err_msg=f"row {g}")
