"""Packs in a bucket open by what stands beside their manifest: in few requests, and as from their own files."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, serving

import gristmill as gm
from gristmill import stores

FILE = "opening.index"

PACKS = ("chess", "rows", "shards", "demo")


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket `drops`: packs of each layout, as jobs write them, and the same in `NAME-old` without the file."""
    folder = tmp_path_factory.mktemp("opening")
    gm.generate("chess", folder / "games", games=120, seed=3)
    gm.generate("2048", folder / "logs", games=24, seed=1, moves_max=900)
    steps, rng = 4000, np.random.default_rng(5)
    arrays: dict[str, Any] = {"observations": rng.random((steps, 40)), "actions": rng.integers(0, 4, steps)}
    (folder / "steps").mkdir()
    np.savez(folder / "steps" / "a.npz", terminals=np.arange(steps) % 90 == 89, **arrays)
    drops = folder / "drops"
    gm.pack(folder / "games", drops / "chess", shard_rows=4000)
    gm.pack(folder / "logs", drops / "rows")
    gm.pack(folder / "logs", drops / "shards", shard_rows=3000)
    gm.pack(folder / "steps", drops / "demo")
    for pack in PACKS:
        assert (drops / pack / FILE).exists()
        shutil.copytree(drops / pack, drops / f"{pack}-old", ignore=shutil.ignore_patterns(FILE))
    return folder


@pytest.fixture
def server(drops: Path, tmp_path: Path) -> Iterator[FaultServer]:
    with serving(drops, tmp_path / "twins") as server:
        yield server


@pytest.fixture
def own(drops: Path) -> Iterator[Path]:
    """A copy of the packs that a test may damage."""
    shutil.copytree(drops / "drops", drops / "own")
    yield drops / "own"
    shutil.rmtree(drops / "own")


def asked(bucket: str = "drops") -> tuple[int, int]:
    counts = stores.requests().get(f"s3://{bucket}")
    return (counts.requests, counts.bytes) if counts else (0, 0)


def opened(pack: str, bucket: str = "drops", **options: Any) -> tuple[Any, int, int]:
    """A pack, and the requests and bytes that opening it took."""
    before = asked(bucket)
    found = gm.open(f"s3://{bucket}/{pack}", **options)
    after = asked(bucket)
    return found, after[0] - before[0], after[1] - before[1]


def loaded(pack: Any, **options: Any) -> gm.DataLoader:
    if isinstance(pack, gm.Rows):
        options["encoder"] = gm.g2048.Steps()
    return gm.DataLoader(pack, batch_size=256, seed=7, epochs=1, **options)


def batches(pack: Any, **options: Any) -> list[dict[str, bytes]]:
    return [{name: np.asarray(array).tobytes() for name, array in batch.items()} for batch in loaded(pack, **options)]


@pytest.mark.parametrize("pack", PACKS)
def test_opening_takes_few_requests_and_all_is_as_without_the_file(
    server: FaultServer, drops: Path, tmp_path: Path, pack: str
) -> None:
    new, requests, fetched = opened(pack)
    assert requests <= 10, "20 of a large pack, whose file comes in pieces"
    sizes = [(drops / "drops" / pack / name).stat().st_size for name in (FILE, "manifest.json")]
    assert fetched <= sum(sizes) + 100
    stores.cache(tmp_path / "other")
    old, more, bytes_of_old = opened(f"{pack}-old")
    assert more > requests
    assert bytes_of_old > fetched
    here = gm.open(drops / "drops" / pack)
    for one in (new, old):
        same(one, here)
    for shuffle in (True, gm.Blocks(512, 2), False):
        assert batches(new, shuffle=shuffle) == batches(here, shuffle=shuffle) == batches(old, shuffle=shuffle)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("shuffle", [True, gm.Blocks(512, 2), False], ids=["rows", "blocks", "off"])
def test_an_epoch_asks_for_what_the_certificate_says(server: FaultServer, pack: str, shuffle: Any) -> None:
    loader = loaded(opened(pack)[0], shuffle=shuffle)
    said = loader.certificate().fetching
    assert said is not None
    before = asked()
    for _ in loader:
        pass
    after = asked()
    first = said["epochs"]["first"]
    assert (after[0] - before[0], after[1] - before[1]) == (first["requests"], first["bytes"])


@pytest.mark.parametrize("pack", ["chess", "rows"])
def test_the_database_is_fetched_when_sql_is_asked(server: FaultServer, drops: Path, pack: str) -> None:
    found, _, fetched = opened(pack)
    database = (drops / "drops" / pack / "metadata.db").stat().st_size
    assert fetched < database
    before = asked()
    assert found.where("id < 5").num_games == 5
    assert asked()[1] - before[1] >= database


def test_checksums_of_rows_come_with_the_rows(server: FaultServer, own: Path) -> None:
    shard = own / "shards" / "steps-00001.npy"
    damaged = bytearray(shard.read_bytes())
    damaged[500] ^= 1
    shard.write_bytes(damaged)
    pack = opened("shards", "own")[0]
    assert records(pack, [0, 1, 2999])
    with pytest.raises(gm.FormatError, match=r"steps-00001.npy.*do not have their checksum"):
        records(pack, [3000])
    with pytest.raises(gm.FormatError, match="do not have their checksum"):
        opened("shards", "own", verify="open")
    assert records(opened("shards", "own", verify="off")[0], [3000])


def same(one: Any, other: Any) -> None:
    """All is the same that a reader sees of two packs: games, records, and the identity that states refer to."""
    one_pack, other_pack = one._compiled, other._compiled
    frames = one_pack.num_frames
    assert frames == other_pack.num_frames
    assert one_pack.game_ids() == other_pack.game_ids()
    assert one_pack.layout().descr == other_pack.layout().descr
    assert one_pack.stretches(0, frames) == other_pack.stretches(0, frames)
    assert records(one, range(0, frames, 97)) == records(other, range(0, frames, 97))
    for place in (0, one_pack.num_games - 1):
        assert one_pack.source(place) == other_pack.source(place)
        assert bytes(one_pack.game(place)) == bytes(other_pack.game(place))
    loaded(one).load_state_dict(loaded(other).state_dict())


def records(pack: Any, frames: Iterable[int]) -> bytes:
    return bytes(pack._compiled.take(np.asarray(list(frames), np.int64)))


def damage(path: Path) -> None:
    found = bytearray(path.read_bytes())
    found[len(found) // 2] ^= 16
    path.write_bytes(found)


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("what", ["damaged", "cut", "empty", "of another pack", "another manifest", "a file more"])
def test_a_file_that_does_not_fit_is_not_used(server: FaultServer, own: Path, pack: str, what: str) -> None:
    folder = own / pack
    match what:
        case "damaged":
            damage(folder / FILE)
        case "cut":
            (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-9])
        case "empty":
            (folder / FILE).write_bytes(b"")
        case "of another pack":
            shutil.copy(own / {"chess": "demo", "shards": "rows"}.get(pack, "chess") / FILE, folder / FILE)
        case "another manifest":
            text = (folder / "manifest.json").read_text()
            (folder / "manifest.json").write_text(text.replace('"writer"', ' "writer"', 1))
        case "a file more":
            last = sorted([*folder.glob("steps*.npy"), *folder.glob("games-*.chunks")])[-1]
            if pack == "rows":
                last.with_name("steps-00000.npy").write_bytes(last.read_bytes())
            else:
                last.with_name("games-00009.chunks" if pack != "shards" else "steps-00099.npy").write_bytes(
                    last.read_bytes()
                )
    if what == "a file more" and pack in ("rows", "shards"):
        # Rows that are there twice are refused, as on a disk.
        for place in (str(folder), f"s3://own/{pack}"):
            with pytest.raises(gm.FormatError, match="has more rows than"):
                gm.open(place)
        return
    here: Any = gm.open(folder)
    found = opened(pack, "own")[0]
    same(found, here)
    assert batches(found) == batches(here)


def test_games_of_another_file_of_the_same_length_are_refused(server: FaultServer, own: Path) -> None:
    path = own / "chess" / "games-00000.chunks"
    games = bytearray(path.read_bytes())
    games[100] ^= 1
    path.write_bytes(games)
    pack = opened("chess", "own")[0]
    with pytest.raises(gm.FormatError, match=r"games-00000.chunks.*do not have their checksum"):
        records(pack, [0])
    games[-40] ^= 1
    path.write_bytes(games)
    pack = opened("chess", "own")[0]
    with pytest.raises(gm.FormatError, match=r"games-00000.chunks.*the index"):
        records(pack, [0])


def test_other_names_of_valuations_are_read(server: FaultServer, own: Path) -> None:
    (own / "rows" / "valuation_types.json").write_text('{"search": 0, "tuple11": 1, "tuple10": 2, "more": 3}')
    same(opened("rows", "own")[0], gm.open(own / "rows"))


@pytest.mark.parametrize("pack", PACKS)
def test_verify_names_a_file_that_does_not_fit(own: Path, pack: str) -> None:
    assert gm.verify(own / pack).ok
    damage(own / pack / FILE)
    said = gm.verify(own / pack)
    assert not said.ok
    assert [Path(fault["file"]).name for fault in said.faults] == [FILE]
    (own / pack / FILE).unlink()
    assert gm.verify(own / pack).ok


def test_jobs_write_it_anew(drops: Path, tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "more", games=30, seed=9)
    shutil.copytree(drops / "drops" / "chess", tmp_path / "chess")
    before = (tmp_path / "chess" / FILE).read_bytes()
    gm.pack(tmp_path / "more", tmp_path / "chess", existing="append")
    assert (tmp_path / "chess" / FILE).read_bytes() != before
    gm.merge([drops / "drops" / "chess", drops / "drops" / "chess-old"], tmp_path / "merged")
    gm.merge([drops / "drops" / "rows", drops / "drops" / "shards"], tmp_path / "rows")
    for name in ("chess", "merged", "rows"):
        assert (tmp_path / name / FILE).exists()
        assert gm.verify(tmp_path / name).ok, name


@pytest.mark.parametrize("pack", PACKS)
def test_packs_of_before_get_it_once(own: Path, pack: str) -> None:
    folder = own / f"{pack}-old"
    assert gm.checksum(folder, dry_run=True).made == [FILE]
    assert not (folder / FILE).exists()
    made = gm.checksum(folder)
    assert (made.made, made.rows) == ([FILE], gm.open(folder).num_frames)
    assert (folder / FILE).read_bytes() == (own / pack / FILE).read_bytes()
    assert FILE in gm.checksum(folder).there
    damage(folder / FILE)
    assert gm.checksum(folder).made == [FILE]
    assert (folder / FILE).read_bytes() == (own / pack / FILE).read_bytes()
