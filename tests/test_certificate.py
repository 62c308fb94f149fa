"""The certificate of a shuffle: what it measures is what batches hold, and its advice mends what it complains of."""

import contextlib
import json
import os
import sqlite3
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import write_imitation
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of 60 games of chess with some 20 positions each."""
    folder = tmp_path_factory.mktemp("certificates")
    gm.pack(write_games(folder / "games", 60), folder / "pack")
    return folder / "pack"


def met(loader: gm.DataLoader, batches: int) -> float:
    """Other rows of its game that a row meets in its batch, counted by `xray`."""
    means = []
    for number in range(batches):
        games = Counter((row["file"], row["game"]) for row in loader.xray(number))
        rows = sum(games.values())
        means += [sum(count * (count - 1) for count in games.values()) / rows] if rows > 1 else []
    return float(np.mean(means))


@pytest.mark.parametrize("shuffle", [True, False, gm.Blocks(32, 4)])
def test_rows_of_one_game_are_counted_as_batches_hold_them(pack: Path, shuffle: Any) -> None:
    loader = gm.DataLoader(gm.open(pack), batch_size=64, seed=1, shuffle=shuffle)
    found = loader.certificate()
    assert found.sample["batches"] == len(loader), "a pass that is small is measured whole"
    assert found.figures["same_game"].value == pytest.approx(met(loader, len(loader)))


def test_the_perfect_figures_are_those_of_independent_arithmetic(pack: Path) -> None:
    rows = gm.open(pack)
    sizes = np.array([len(game) for game in rows.games])
    found = gm.DataLoader(rows, batch_size=32, seed=1).certificate()
    total = sizes.sum()
    # The last batch is smaller.
    others = np.mean([31] * (total // 32) + [total % 32 - 1] * int(total % 32 > 1))
    same = (sizes * (sizes - 1)).sum() / total / (total - 1)
    assert found.figures["same_game"].perfect == pytest.approx(others * same, rel=1e-6)
    assert found.figures["neighbours"].perfect == pytest.approx(total * (1 - 0.5**0.5))
    assert found.figures["places"].perfect == 1


def test_orders_are_told_apart(pack: Path) -> None:
    def level(**options: Any) -> str:
        return gm.DataLoader(gm.open(pack), batch_size=16, seed=3, **options).certificate().level

    assert level() == "good"
    assert level(shuffle=False) == "none"
    assert level(shuffle=gm.Blocks(64, 1)) in ("none", "weak")


@pytest.mark.parametrize("seed", range(8))
def test_a_perfect_shuffle_is_good_whatever_the_seed(pack: Path, seed: int) -> None:
    assert gm.DataLoader(gm.open(pack), batch_size=32, seed=seed).certificate().level == "good"


def test_the_advice_on_blocks_is_the_change_that_mends(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "rows", make_rows(200)))
    few = gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=8, seed=1, shuffle=gm.Blocks(8, 2))
    found = few.certificate()
    assert found.figures["same_game"].level != "good"
    (advice,) = found.advice
    size, blocks = map(int, advice.split("Blocks(")[1].split(")")[0].split(","))
    assert blocks > 2
    mended = gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=8, seed=1, shuffle=gm.Blocks(size, blocks))
    assert mended.certificate().figures["same_game"].level == "good"


def test_a_shuffle_that_is_worse_than_required_is_refused(pack: Path) -> None:
    rows = gm.open(pack)
    gm.DataLoader(rows, batch_size=32, seed=1, require="good")
    with pytest.raises(gm.ConfigError, match=r"at least fair, and it is none: same_game is .*shuffle the rows"):
        gm.DataLoader(rows, batch_size=32, seed=1, shuffle=False, require="fair")
    gm.DataLoader(rows, batch_size=32, seed=1, shuffle=False, require="none")
    wrong: Any = "best"
    with pytest.raises(gm.ConfigError, match="`best` is no level; expected one of: none, weak, fair, good"):
        gm.DataLoader(rows, require=wrong)
    number: Any = 3
    with pytest.raises(TypeError):
        gm.DataLoader(rows).certificate(require=number)


def test_a_notebook_shows_it_as_a_table(pack: Path) -> None:
    found = gm.DataLoader(gm.open(pack), batch_size=32, seed=1, shuffle=False).certificate()
    assert isinstance(found, gm.Certificate)
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.figures)
    assert "shuffle the rows" in page
    hostile = gm.Certificate(**{**vars(found), "says": "<script>alert(1)</script>"})
    assert "<script" not in hostile._repr_html_()


def test_an_epoch_is_counted(pack: Path) -> None:
    rows = gm.open(pack)
    total = len(rows)
    kept = gm.DataLoader(rows, batch_size=100, seed=1).certificate().plan
    assert (kept["rows"], kept["batches"], kept["dropped_rows"]) == (total, -(-total // 100), 0)
    dropped = gm.DataLoader(rows, batch_size=100, seed=1, last_batch="drop").certificate().plan
    assert (dropped["batches"], dropped["dropped_rows"]) == (total // 100, total % 100)
    shared = gm.DataLoader(rows, batch_size=100, seed=1, rank=1, world_size=4).certificate().plan
    assert (shared["ranks"], shared["batch_rows"], shared["batches"]) == (4, 100, kept["batches"])


def test_ranks_get_the_certificate_of_all(pack: Path) -> None:
    alone = gm.DataLoader(gm.open(pack), batch_size=64, seed=1).certificate()
    first, second = (gm.DataLoader(gm.open(pack), batch_size=64, seed=1, rank=r, world_size=2) for r in range(2))
    assert first.certificate().figures == second.certificate().figures == alone.figures


def test_packs_are_mixed_as_their_weights_say(pack: Path) -> None:
    rows = gm.open(pack)
    few = rows.games[:10]
    found = gm.DataLoader([rows, few], weights=[1, 3], batch_size=64, seed=1).certificate()
    assert [share["rows"] for share in found.mix] == [len(rows), len(few)]
    assert [share["wanted"] for share in found.mix] == [0.25, 0.75]
    for share in found.mix:
        assert share["realised"] == pytest.approx(share["wanted"], abs=0.02)
    repeated = found.mix[1]["realised"] * found.plan["rows"] - found.mix[1]["rows"]
    assert found.plan["repeated_rows"] == pytest.approx(repeated, abs=1)
    assert "neighbours" not in found.figures, "a mix leads from no row to its place"


def test_rows_that_are_drawn_by_weight_are_certified(pack: Path) -> None:
    drawn = gm.DataLoader(gm.open(pack), batch_size=64, seed=1, sampling=gm.Hanse(threshold=10))
    found = drawn.certificate()
    assert found.level == "good"
    assert "repeated_rows" not in found.plan
    assert found.figures["same_game"].value == pytest.approx(found.figures["same_game"].perfect, abs=0.5)


def test_steps_of_demonstrations_have_no_games_to_be_told_apart(tmp_path: Path) -> None:
    write_imitation(tmp_path / "demo.pkl", [400, 300])
    demos = gm.open(tmp_path / "demo.pkl")
    good = gm.DataLoader(demos, batch_size=32, seed=1).certificate()
    stored = gm.DataLoader(demos, batch_size=32, seed=1, shuffle=False).certificate()
    assert (good.level, stored.level) == ("good", "none")
    assert set(good.figures) == {"places"}


def stream(folder: Path, **options: Any) -> gm.DataLoader:
    defaults: dict[str, Any] = {"batch_size": 32, "seed": 1, "index": "off", "reservoir": 0}
    return gm.DataLoader(gm.presets.lc0(folder, **{**defaults, **options}))


def test_a_stream_without_a_reservoir_is_told_what_it_needs(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 150)
    bare = stream(games, pool=150, batch_size=16)
    found = bare.certificate()
    assert (found.of, found.level) == ("stream", "none")
    assert found.plan["window_games"] == found.plan["games"] == 150
    assert found.plan["rows_per_use"] == pytest.approx(21, abs=0.5)
    (advice,) = found.advice
    wanted = int(advice.split("`reservoir=")[1].split("`")[0])
    assert stream(games, pool=150, batch_size=16, reservoir=wanted).certificate().level == "good"


def test_rows_of_a_stream_are_counted_as_its_batches_hold_them(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 40)
    loader = stream(games, epochs=1, reservoir=200)
    found = loader.certificate()
    number = found.sample["batches"]
    means = []
    other = gm.DataLoader(loader.config)
    for at in range(number):
        count = Counter(row["file"] for row in other.xray(at, survey=True))
        rows = sum(count.values())
        means += [sum(n * (n - 1) for n in count.values()) / rows] if rows > 1 else []
    assert found.figures["same_game"].value == pytest.approx(float(np.mean(means)))


def test_a_pool_that_leaves_games_out_is_held_against_a_batch(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 40)
    found = stream(games, pool=10, reservoir=2000, batch_size=64).certificate()
    assert found.figures["window"].value == 10
    assert found.figures["window"].level == "weak"
    assert any("`pool=256`" in advice for advice in found.advice)
    assert "window" not in stream(games, pool=40, reservoir=2000).certificate().figures


def test_a_certificate_is_a_function_of_seed_and_data(tmp_path: Path, pack: Path) -> None:
    games = write_games(tmp_path / "games", 40)
    of_stream = [stream(games, pool=30, reservoir=300, threads=n).certificate() for n in (1, 3)]
    assert of_stream[0].figures == of_stream[1].figures
    assert of_stream[0].plan["rows_per_use"] == of_stream[1].plan["rows_per_use"]
    of_rows = [gm.DataLoader(gm.open(pack), seed=5, threads=n).certificate() for n in (1, 3)]
    # Threads hold batches of their own.
    assert of_rows[0].plan.pop("memory_bytes") < of_rows[1].plan.pop("memory_bytes")
    assert of_rows[0] == of_rows[1]


def test_a_loader_that_runs_is_not_disturbed(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 30)

    def batches(asks: bool) -> list[bytes]:
        with stream(games, epochs=1, reservoir=100) as loader:
            found = []
            for batch in loader:
                found.append(batch["planes"].tobytes())
                if asks and len(found) == 3:
                    loader.certificate()
            return found

    assert batches(asks=True) == batches(asks=False)


def test_outputs_of_a_split_have_certificates_of_their_own(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 60)
    loader = stream(games, epochs=1, reservoir=2000, split={"train": 2, "test": 1})
    train, test = (loader.certificate(alias=alias) for alias in ("train", "test"))
    assert (train.output, test.output) == ("train", "test")
    assert train.plan["window_games"] + test.plan["window_games"] == 60
    with pytest.raises(gm.ConfigError, match="no output `val`"):
        loader.certificate(alias="val")


def command(*words: object) -> subprocess.CompletedProcess[str]:
    program = Path(__file__).resolve().parents[1] / "target/debug/gristmill"
    if not program.exists():
        pytest.skip("skipped: the command is not built; run `cargo build`")
    env = {**os.environ, "COLUMNS": "100"}
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, env=env, check=False)


def test_the_command_says_what_python_says(pack: Path, tmp_path: Path) -> None:
    done = command("plan", pack, "--batch-size", 64, "--seed", 1, "--json")
    found = gm.DataLoader(gm.open(pack), batch_size=64, seed=1).certificate()
    document = json.loads(done.stdout)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert {figure["name"]: figure["value"] for figure in document["figures"]} == {
        name: figure.value for name, figure in found.figures.items()
    }
    page = tmp_path / "plan.html"
    said = command("plan", pack, "--batch-size", 64, "--shuffle", "off", "--require", "fair", "--html", page)
    assert said.returncode == 1
    assert "at least fair, and it is none" in said.stderr
    assert "same_game: none" in page.read_text()
    assert "shuffle the rows" in page.read_text()
    again = command("plan", pack, "--html", page)
    assert (again.returncode, "--overwrite" in again.stderr) == (2, True)
    wrong = command("plan", pack, "--pool", 3)
    assert (wrong.returncode, "--pool goes with directories" in wrong.stderr) == (2, True)
    nowhere = command("plan", tmp_path / "nowhere")
    assert (nowhere.returncode, "nowhere" in nowhere.stderr) == (1, True)


def test_feed_refuses_a_shuffle_that_is_too_weak(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 40)
    words = ("feed", games, "--batches", 2, "--batch-size", 32, "--seed", 1)
    refused = command(*words, "--reservoir", 0, "--require", "fair")
    assert refused.returncode == 2
    assert "reservoir of at least" in refused.stderr
    assert command(*words, "--reservoir", 3000, "--require", "good").returncode == 0


def test_classes_of_real_games_are_balanced_by_a_shuffle_alone(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "games", games=150, seed=2, plies_max=60)
    gm.pack(tmp_path / "games", tmp_path / "pack")
    rows = gm.open(tmp_path / "pack")
    balance = [
        gm.DataLoader(rows, batch_size=64, seed=1, shuffle=shuffle).certificate().figures["balance"]
        for shuffle in (True, False)
    ]
    assert balance[0].level == "good"
    assert balance[1].level in ("weak", "none")


def test_classes_of_a_stream_are_those_of_its_games(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "games", games=150, seed=2, plies_max=60)
    found = [
        stream(tmp_path / "games", epochs=1, batch_size=64, reservoir=size).certificate().figures["balance"]
        for size in (8000, 0)
    ]
    assert found[0].level == "good"
    assert found[1].level in ("weak", "none")
    # Chi-square by hand, over the batches of a loader that runs.
    gm.pack(tmp_path / "games", tmp_path / "pack")
    with contextlib.closing(sqlite3.connect(tmp_path / "pack/metadata.db")) as db:
        results = dict(db.execute("SELECT source, result FROM games"))
    loader = stream(tmp_path / "games", epochs=1, batch_size=64, reservoir=0)
    counts = [Counter(results[row["file"]] for row in loader.xray(at, survey=True)) for at in range(found[1].of)]
    classes = sorted({result for count in counts for result in count})
    table = np.array([[count[result] for result in classes] for count in counts], float)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    chi = float(((table - expected) ** 2 / expected).sum()) / (len(table) * (len(classes) - 1))
    assert found[1].value == pytest.approx(chi)


def test_games_of_a_stream_are_as_old_as_half_of_its_window(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 120)
    found = stream(games, pool=120, reservoir=500, batch_size=64).certificate().figures["age"]
    assert found.perfect == 119 / 2
    assert found.value == pytest.approx(found.perfect, rel=0.15)
    assert found.level == "good"
    assert "age" not in stream(write_games(tmp_path / "few", 20), reservoir=500).certificate().figures


def test_what_it_takes_is_counted(tmp_path: Path, pack: Path) -> None:
    source = gm.open(pack)
    with gm.DataLoader(source, batch_size=64, seed=5, threads=2, queue_capacity=3) as loader:
        plan = loader.certificate().plan
        batch = loader.get_next()
        assert plan["memory_bytes"] == 6 * sum(np.asarray(batch[name]).nbytes for name in batch.names)
    assert plan["disk_bytes"] == sum(path.stat().st_size for path in pack.rglob("*") if path.is_file())
    assert plan["rows_per_game"] == len(source) / source.num_games
    games = write_games(tmp_path / "games", 30)
    plan = stream(games).certificate().plan
    assert plan["disk_bytes"] == sum(path.stat().st_size for path in games.iterdir())
    assert plan["memory_bytes"] > 0
