"""Shards of KataGo: packed, streamed and fed in images drawn for each row, against NumPy bit for bit; and refused."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from katago_shards import Members, expected, joined, members, write_shard, write_shards

import gristmill as gm

#: A batch of a loader, or a copy of one.
Batch = gm.Batch | dict[str, Any]

MEMBERS = list(members(1))
MADE = ["planes", "policy", "values", "symmetry"]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Members]:
    """A folder of three shards, of which one has no row and the last fewer than the first; their rows."""
    return tmp_path / "in", joined(write_shards(tmp_path / "in", [300, 0, 41]))


@pytest.fixture
def pack(made: tuple[Path, Members], tmp_path: Path) -> gm.Games:
    gm.pack(made[0], tmp_path / "pack")
    return gm.open(tmp_path / "pack", expect=gm.Games)


def rows_of(batch: Batch, arrays: Members) -> npt.NDArray[np.int64]:
    """Which rows of `arrays` are in a batch, by their numbers."""
    numbers = {number: row for row, number in enumerate(arrays["globalInputNC"][:, 0].tolist())}
    return np.array([numbers[number] for number in np.asarray(batch["globalInputNC"])[:, 0].tolist()])


def same(batch: Batch, arrays: Members) -> list[int]:
    """Holds every row of a batch against NumPy's image of it; gives the images."""
    drawn = np.asarray(batch["symmetry"]).tolist() if "symmetry" in batch else [0] * len(rows_of(batch, arrays))
    for i, (row, symmetry) in enumerate(zip(rows_of(batch, arrays), drawn, strict=True)):
        image = expected(arrays, row, symmetry)
        for name, array in batch.items():
            found = np.asarray(array)[i]
            if name == "planes":
                assert found.astype(np.float32).tobytes() == image[name].tobytes(), f"planes of row {row}"
            elif name in image:
                assert (found.dtype, found.shape) == (image[name].dtype, image[name].shape), name
                assert found.tobytes() == np.ascontiguousarray(image[name]).tobytes(), f"{name} of row {row}"
    return drawn


def test_a_shard_opens_as_records(made: tuple[Path, Members]) -> None:
    folder, arrays = made
    source = gm.open(folder / "data0.npz")
    assert (source.format, len(source), source.num_frames) == ("katago.npz", 2, 300)
    records = np.asarray(source[1])
    for name in MEMBERS:
        np.testing.assert_array_equal(records[name], arrays[name][256:300])
    assert len(gm.open(folder / "data1.npz")) == 0


def test_a_pack_has_every_row_as_it_was(pack: gm.Games, made: tuple[Path, Members]) -> None:
    _, arrays = made
    assert (pack.kind, pack.num_games, pack.num_frames) == ("katago", 3, 341)
    whole = pack.encode(np.arange(341), encoder=gm.Fields([*MEMBERS, *MADE[:3]]))
    for name in MEMBERS:
        np.testing.assert_array_equal(np.asarray(whole[name]), arrays[name])
    assert set(same(whole, arrays)) == {0}
    assert pack.where("smallest_board = 81").num_games == 3
    pack.mark("nine", "points = 81")
    pack.mark("full", "points = 361 AND stones > 1")
    assert pack.marked("nine").num_frames + pack.marked("full").num_frames == 341
    assert pack.duplicates().different == 3


def test_a_pack_of_one_shard_is_of_the_same_rows_and_grows(made: tuple[Path, Members], tmp_path: Path) -> None:
    folder, arrays = made
    gm.pack(folder / "data0.npz", tmp_path / "pack")
    one = gm.open(tmp_path / "pack", expect=gm.Games)
    assert (one.kind, one.num_frames) == ("katago", 300)
    gm.pack(folder, tmp_path / "pack", existing="append")
    grown = gm.open(tmp_path / "pack", expect=gm.Games)
    assert grown.num_frames == 341
    newest = grown[grown.num_frames - 41 :].encode(np.arange(41), encoder=gm.Fields(["globalInputNC"]))
    np.testing.assert_array_equal(np.asarray(newest["globalInputNC"]), arrays["globalInputNC"][300:])


@pytest.mark.parametrize("edge", [19, 9])
def test_all_images_are_those_of_numpy(tmp_path: Path, edge: int) -> None:
    arrays = joined(write_shards(tmp_path / "in", [130, 60], edge=edge))
    gm.pack(tmp_path / "in", tmp_path / "pack")
    fields = gm.Fields([*MEMBERS, *MADE])
    loader = gm.DataLoader(gm.open(tmp_path / "pack"), encoder=fields, batch_size=48, seed=7, epochs=2)
    drawn = [symmetry for _ in range(2) for batch in loader for symmetry in same(batch, arrays)]
    assert (len(drawn), set(drawn)) == (380, set(range(8)))
    assert drawn[:190] != drawn[190:], "each epoch draws its own"
    eight = gm.DataLoader(
        gm.open(tmp_path / "pack"), encoder=gm.Fields(["planes:u8", "globalInputNC", "symmetry"]), batch_size=48, seed=7
    )
    batch = next(iter(eight))
    assert np.asarray(batch["planes"]).dtype == np.uint8
    same(batch, arrays)


def test_images_are_of_the_seed_alone_and_resume_at_every_batch(pack: gm.Games, made: tuple[Path, Members]) -> None:
    def loader(seed: int, threads: int = 1) -> Any:
        fields = gm.Fields(["globalInputNC", "policy", "symmetry"])
        return gm.DataLoader(pack, encoder=fields, batch_size=64, seed=seed, epochs=1, threads=threads)

    def copied(batches: Any) -> list[dict[str, bytes]]:
        return [{name: np.asarray(array).tobytes() for name, array in batch.items()} for batch in batches]

    all_of_them = copied(loader(3))
    assert all_of_them == copied(loader(3, threads=4))
    assert all_of_them != copied(loader(4))
    for taken in range(len(all_of_them)):
        first = loader(3)
        batches = iter(first)
        for _ in range(taken):
            next(batches)
        state = first.state_dict()
        resumed = loader(3)
        resumed.load_state_dict(state)
        assert copied(resumed) == all_of_them[taken:], f"after {taken} batches"


def test_a_folder_is_a_stream_in_images_that_resumes_at_every_batch(made: tuple[Path, Members]) -> None:
    folder, arrays = made
    tensors = ["planes", "globalInputNC", "policy", "valueTargetsNCHW", "symmetry"]

    def loader() -> Any:
        config = gm.presets.lc0(
            folder,
            encoder="katago",
            tensors=tensors,
            max_solid_bytes="4MiB",
            epochs=1,
            batch_size=50,
            seed=5,
            reservoir=100,
        )
        return gm.DataLoader(config)

    def copied(batches: Any) -> list[dict[str, Any]]:
        return [{name: np.array(array) for name, array in batch.items()} for batch in batches]

    batches = copied(loader())
    drawn = [symmetry for batch in batches for symmetry in same({name: batch[name] for name in tensors}, arrays)]
    assert sorted(row for batch in batches for row in rows_of(batch, arrays)) == list(range(341))
    assert set(drawn) == set(range(8))
    for taken in range(len(batches)):
        first = loader()
        stream = iter(first)
        for _ in range(taken):
            next(stream)
        state = first.state_dict()
        resumed = loader()
        resumed.load_state_dict(state)
        for found, batch in zip(copied(resumed), batches[taken:], strict=True):
            assert all(found[name].tobytes() == batch[name].tobytes() for name in tensors)


def test_other_shapes_are_declared_in_streams(tmp_path: Path) -> None:
    arrays = joined(write_shards(tmp_path / "in", [70], edge=9, targets=80))

    def batches(tensors: list[str]) -> list[dict[str, Any]]:
        options: dict[str, Any] = {"max_solid_bytes": "4MiB", "epochs": 1, "batch_size": 70, "seed": 5}
        config = gm.presets.lc0(tmp_path / "in", encoder="katago", tensors=tensors, **options)
        return [{name: np.array(array) for name, array in batch.items()} for batch in gm.DataLoader(config)]

    names = ["planes[22,9,9]", "globalInputNC", "policy[2,82]", "globalTargetsNC[80]", "symmetry"]
    (batch,) = batches(names)
    assert (batch["globalTargetsNC"].shape, batch["planes"].shape) == ((70, 80), (70, 22, 9, 9))
    same({name.split("[")[0]: batch[name.split("[")[0]] for name in names}, arrays)
    with pytest.raises(gm.GristmillError, match=r"rows of `binaryInputNCHWPacked` have the shape \[22, 11\] here"):
        batches(["planes", "globalInputNC"])


def _broken(folder: Path, change: Any) -> Path:
    arrays = members(20)
    change(arrays)
    write_shard(folder / "data0.npz", arrays)
    return folder / "data0.npz"


@pytest.mark.parametrize(
    ("change", "member", "says"),
    [
        (lambda a: a.pop("globalInputNC"), "globalInputNC", "no member `globalInputNC`, which each shard"),
        (lambda a: a.update(globalInputNC=a["globalInputNC"].astype("f8")), "globalInputNC", "elements f8, expected"),
        (lambda a: a.update(globalInputNC=a["globalInputNC"].astype(">f4")), "globalInputNC", "big-endian"),
        (lambda a: a.update(scoreDistrN=np.asfortranarray(a["scoreDistrN"])), "scoreDistrN", "order of Fortran"),
        (lambda a: a.update(scoreDistrN=a["scoreDistrN"][1:]), "scoreDistrN", "19 rows"),
        (lambda a: a.update(scoreDistrN=np.int8(3)), "scoreDistrN", "a row for each position"),
        (lambda a: a.update(policyTargetsNCMove=a["policyTargetsNCMove"][..., 1:]), "policyTargetsNCMove", "the pass"),
        (lambda a: a.update(notes=np.array([{}] * 20, object)), "notes", "Python objects"),
        (lambda a: a["policyTargetsNCMove"].__setitem__((7, 0, 3), -1), "policyTargetsNCMove", "row 7 of the file"),
        (lambda a: a["globalTargetsNC"].__setitem__((9, 1), np.nan), "globalTargetsNC", "row 9 of the file"),
        (lambda a: a["binaryInputNCHWPacked"].__setitem__((3, 5, 45), 1), "binaryInputNCHWPacked", "plane 5"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_member_and_row(
    tmp_path: Path, change: Any, member: str, says: str
) -> None:
    path = _broken(tmp_path, change)
    with pytest.raises(gm.FormatError, match=says) as refused:
        list(gm.open(path))
    assert (refused.value.member, refused.value.source) == (f"{member}.npy", str(path))


def test_a_shard_that_is_cut_anywhere_is_refused_and_never_a_demonstration(tmp_path: Path) -> None:
    write_shards(tmp_path, [3])
    whole = (tmp_path / "data0.npz").read_bytes()
    for cut in [*range(60, len(whole), 97), len(whole) - 1]:
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(gm.FormatError) as refused:
            list(gm.open(tmp_path / "cut.npz"))
        assert refused.value.kind in ("truncated", "corrupt"), f"cut at {cut}: {refused.value}"


def test_damaged_members_are_named(tmp_path: Path) -> None:
    write_shards(tmp_path, [30])
    path = tmp_path / "data0.npz"
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("valueTargetsNCHW.npy").header_offset + 2000
    damaged = bytearray(path.read_bytes())
    damaged[at] ^= 0x10
    path.write_bytes(damaged)
    with pytest.raises(gm.FormatError) as refused:
        gm.open(path)
    assert refused.value.member == "valueTargetsNCHW.npy"


def test_no_more_of_a_member_is_inflated_than_its_header_says(tmp_path: Path) -> None:
    """A member that goes on behind its rows: its length is never known, since it is not inflated to its end."""
    write_shards(tmp_path, [3])
    path = tmp_path / "data0.npz"
    with zipfile.ZipFile(path) as archive:
        stored = {name: archive.read(name) for name in archive.namelist()}
    stored["scoreDistrN.npy"] += bytes(1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in stored.items():
            archive.writestr(name, content)
    says = f"more bytes, its header says {len(stored['scoreDistrN.npy']) - (1 << 20)}"
    with pytest.raises(gm.FormatError, match=says) as refused:
        gm.open(path)
    assert (refused.value.kind, refused.value.member) == ("wrong_size", "scoreDistrN.npy")


def test_bad_shards_are_left_out_of_a_pack_and_named(made: tuple[Path, Members], tmp_path: Path) -> None:
    folder, _ = made
    (folder / "cut.npz").write_bytes((folder / "data0.npz").read_bytes()[:5000])
    write_shard(folder / "nine.npz", members(10, 9, edge=9))
    arrays = members(20, 8)
    arrays["globalTargetsNC"][3, 3] = np.inf
    write_shard(folder / "odd.npz", arrays)
    with pytest.raises(gm.FormatError, match=r"cut\.npz"):
        gm.pack(folder, tmp_path / "none", on_error="raise")
    made_of = gm.pack(folder, tmp_path / "pack", on_error="quarantine")
    assert (made_of.runs, made_of.rows) == (3, 341)
    skipped = {one.file: one.detail for one in made_of.skipped}
    assert "row 3 of the file" in skipped["odd.npz/0"]
    assert "differ" in skipped["nine.npz/0"]
    assert "cut.npz" in skipped


def test_jobs_work_on_shards_and_packs(made: tuple[Path, Members], tmp_path: Path) -> None:
    folder, pack = made[0], tmp_path / "pack"
    gm.pack(folder, pack)
    assert [(fault["file"], fault["kind"]) for fault in gm.verify(folder).faults] == [
        (str(folder / "data1.npz"), "empty")
    ]
    (folder / "data1.npz").unlink()
    for place in (folder, pack):
        verified = gm.verify(place)
        assert (verified.ok, verified.checked) == (True, 341)
        counted = gm.stats(place)
        assert counted["frames"] == 341
        named = {"points of the board", "stones on the board", "moves with visits"}
        assert set(counted["kinds"]["katago"]["numbers"]) == named
    assert "data0.npz" in repr(gm.open(folder / "data0.npz"))


def test_a_folder_of_shards_says_what_takes_it(made: tuple[Path, Members]) -> None:
    with pytest.raises(gm.FormatError, match=r"shards of KataGo.*gristmill pack") as refused:
        gm.open(made[0])
    assert str(made[0]) in str(refused.value)
    with pytest.raises(gm.StageError, match="max_solid_bytes"):
        list(gm.DataLoader(gm.presets.lc0(made[0], encoder="katago", epochs=1)))


def test_wrong_tensors_and_encoders_are_refused_by_name(pack: gm.Games) -> None:
    with pytest.raises(gm.ConfigError, match=r"no tensor `plane`.*there are planes, policy, values, symmetry"):
        gm.DataLoader(pack, encoder=gm.Fields(["plane"]))
    with pytest.raises(TypeError, match=r"take gristmill\.Fields"):
        gm.DataLoader(pack, encoder=gm.chess.Tensors(["planes"]))
