"""Minari data sets of both forms, against the real package in both directions; and pairs, shards and native forms."""

import json
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from demo_files import write_atari, write_dm_control, write_magical
from minari_sets import by_minari, minari_root, part, record

import gristmill as gm
from gristmill.demos.minari import MinariDemos, write, write_shards

# Minari leaves temporary folders to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

FORMS = ("hdf5", "arrow")
PARTS = ("image", "pos", "deep.grid", "deep.pick", "both.0", "both.1")


@pytest.fixture(scope="module", params=FORMS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven episodes: the order of names and that of numbers differ."""
    return record(tmp_path_factory.mktemp("root"), f"some/every-{request.param}-v0", request.param, 11)


def same(one: gm.Demos, other: gm.Demos) -> None:
    """Equality of every value of two data sets."""
    assert (one.layout, one.lengths) == (other.layout, other.lengths)
    for i in range(len(one)):
        assert one[i].tobytes() == other[i].tobytes()
        assert_plain(one.extras(i), other.extras(i))


def assert_plain(one: Any, other: Any) -> None:
    """Equality at every depth, of types too where they are arrays."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_plain(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other, strict=True):
            assert_plain(*pair)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_what_minari_wrote(recorded: Path) -> None:
    demos = gm.open(recorded)
    form = recorded.name.split("-")[1]
    assert isinstance(demos, MinariDemos)
    assert (demos.format, demos.key, len(demos)) == (f"demo.minari.{form}", recorded.name, 11)
    assert demos.lengths == [1 + e % 4 for e in range(11)]
    assert demos.num_frames == sum(demos.lengths)
    some = demos[3:5]
    assert (some.lengths, some.column("rews").tolist()) == ([4, 1], [*demos[3]["rews"], *demos[4]["rews"]])
    pairs = gm.pairs.TemporalOffset("action_prediction", obs=f"obs.{PARTS[0]}", action="acts.0").over(some)
    assert pairs[:].target.tolist() == demos[3]["acts.0"][:3, None].tolist()
    expected = [f"{head}.{name}" for head in ("obs", "next_obs") for name in PARTS]
    others = ["acts.0", "acts.1", "rews", "dones", "truncated", "terminated"]
    assert sorted(demos.layout.names) == sorted([*expected, *others])
    for i, known in enumerate(by_minari(recorded.parents[1], f"some/{recorded.name}")):
        episode, extras = demos[i], demos.extras(i)
        for name in PARTS:
            seen = part(known.observations, f"obs.{name}")
            assert len(seen) == len(episode) + 1
            np.testing.assert_array_equal(episode[f"obs.{name}"], seen[:-1])
            np.testing.assert_array_equal(episode[f"next_obs.{name}"], seen[1:])
        for name in ("acts.0", "acts.1"):
            np.testing.assert_array_equal(episode[name], part(known.actions, name))
        np.testing.assert_array_equal(episode["rews"], known.rewards)
        np.testing.assert_array_equal(episode["terminated"], known.terminations)
        np.testing.assert_array_equal(episode["truncated"], known.truncations)
        assert episode["dones"].tolist() == [False] * (len(episode) - 1) + [True]
        assert demos.truncated(i) == (i % 2 == 1)
        words = list(known.observations["words"])
        assert (extras["obs.words"], extras["next_obs.words"]) == (words[:-1], words[1:])
        assert [info["at"] for info in extras["infos"]] == list(range(1, len(episode) + 1))
        assert [info["said"] for info in extras["infos"]] == [f"step {t + 1}" for t in range(len(episode))]
        assert extras["infos"][-1]["inner"]["v"].tolist() == [len(episode)] * 3
        begun, *rest = extras["reset"]
        assert (begun["seed"], begun["options"]) == (i, {"level": {"name": "easy", "size": i}})
        assert (begun["infos"]["at"], begun["infos"]["said"], rest) == (0, "step 0", [{}] * (len(episode) - 1))
    for name in ("obs.pos", "next_obs.both.1", "acts.1", "dones", "rews"):
        np.testing.assert_array_equal(demos.column(name), np.concatenate([episode[name] for episode in demos]))


def test_metadata_has_spaces_and_the_environment(recorded: Path) -> None:
    demos = gm.open(recorded / "data")
    metadata = demos.metadata
    assert metadata["env_cfg"]["task_name"] == "EveryKind-v0"
    assert (metadata["minari"]["author"], metadata["minari"]["algorithm_name"]) == (["someone"], "random")
    spaces = metadata["observation_space"].state["spaces"]
    assert spaces["both"].state["spaces"][0].state == {"n": 5, "start": 2}
    assert spaces["pos"].state["high"].tolist() == [np.inf] * 2
    assert metadata["action_space"].kind == "Tuple"
    assert metadata["lossy"] == []
    again = pickle.loads(pickle.dumps(demos))
    assert again[3].tobytes() == demos[3].tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_pictures_in_jpeg_are_decoded_and_called_lossy(tmp_path: Path, form: str) -> None:
    path = record(tmp_path, "some/jpeg-v0", form, 2, jpeg=True)
    demos = gm.open(path)
    assert demos.metadata["lossy"] == ["obs.image", "next_obs.image"]
    for i, known in enumerate(by_minari(tmp_path, "some/jpeg-v0")):
        np.testing.assert_array_equal(demos[i]["obs.image"], known.observations["image"][:-1])
    write(tmp_path / "some/again-v0", demos, data_format="arrow" if form == "hdf5" else "hdf5")
    again = gm.open(tmp_path / "some/again-v0")
    assert again.metadata["lossy"] == []
    same(demos, again)


@pytest.mark.parametrize("to", FORMS)
def test_minari_reads_what_we_write(recorded: Path, tmp_path: Path, to: Any) -> None:
    demos, told = gm.open(recorded), []
    with minari_root(tmp_path):
        done = write(tmp_path / "ns/copy-v3", demos, data_format=to, progress=lambda *at: told.append(at))
    assert (done.dataset_id, done.episodes, done.steps, done.filled, done.lost) == ("ns/copy-v3", 11, 26, [], [])
    assert told == [(i + 1, 11) for i in range(11)]
    same(demos, gm.open(tmp_path / "ns/copy-v3"))
    ours, theirs = by_minari(tmp_path, "ns/copy-v3"), by_minari(recorded.parents[1], f"some/{recorded.name}")
    for one, two in zip(ours, theirs, strict=True):
        for name in (*PARTS, "words"):
            np.testing.assert_array_equal(part(one.observations, f"obs.{name}"), part(two.observations, f"obs.{name}"))
        for name in ("rewards", "terminations", "truncations"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        np.testing.assert_array_equal(one.actions[1], two.actions[1])
        np.testing.assert_array_equal(one.infos["at"], two.infos["at"])
    told = json.loads((tmp_path / "ns/copy-v3/data/metadata.json").read_text())
    known = json.loads((recorded / "data/metadata.json").read_text())
    for key in ("total_steps", "total_episodes", "observation_space", "action_space", "env_spec", "author"):
        assert told[key] == known[key], key
    assert (told["jpeg_encoding"], told["data_format"]) == (False, to)


@pytest.mark.parametrize("form", FORMS)
def test_jpeg_is_written_where_it_is_asked_for(tmp_path: Path, form: Any) -> None:
    demos = gm.open(record(tmp_path, "some/every-v0", "hdf5", 2))
    write(tmp_path / "some/small-v0", demos, data_format=form, jpeg=True)
    small = gm.open(tmp_path / "some/small-v0")
    assert small.metadata["lossy"] == ["obs.image", "next_obs.image"]
    assert (small[0]["obs.image"] != demos[0]["obs.image"]).any()
    np.testing.assert_array_equal(small[1]["obs.pos"], demos[1]["obs.pos"])
    for i, known in enumerate(by_minari(tmp_path, "some/small-v0")):
        np.testing.assert_array_equal(small[i]["obs.image"], known.observations["image"][:-1])


def test_shards_and_back(recorded: Path, tmp_path: Path) -> None:
    demos = gm.open(recorded)
    paths = write_shards(tmp_path / "demos.tar.zst", demos, max_frames=8)
    assert len(paths) > 2
    shards = gm.open(tmp_path)
    assert shards.lengths == demos.lengths
    assert shards.metadata["env_cfg"]["task_name"] == "EveryKind-v0"
    assert shards.metadata["env_cfg"]["minari"]["author"] == ["someone"]
    for i, (one, two) in enumerate(zip(shards, demos, strict=True)):
        for name in ("image", "deep_grid", "both_0"):
            np.testing.assert_array_equal(one[f"obs_{name}"], two[f"obs.{name.replace('_', '.')}"])
        np.testing.assert_array_equal(one["terminated"], two["terminated"])
        assert (one["truncated"][-1], one["dones"][-1]) == (demos.truncated(i), True)
    done = write(tmp_path / "again-v0", shards)
    assert (done.filled, done.lost) == ([], [])
    same(demos, gm.open(tmp_path / "again-v0"))


def test_data_sets_are_packed_and_come_back(recorded: Path, tmp_path: Path) -> None:
    demos, name = gm.open(recorded), recorded.name
    packed = gm.pack(recorded, tmp_path / "pack")
    assert (packed.runs, packed.rows, packed.skipped) == (11, demos.num_frames, [])
    pack = gm.open(tmp_path / "pack")
    assert pack.lengths == demos.lengths
    for i, (one, two) in enumerate(zip(pack.games, demos, strict=True)):
        assert (pack.member(i), pack.truncated(i)) == (f"{name}/demos.tar#{i}", demos.truncated(i))
        for field in ("acts_1", "obs_image", "obs_deep_grid", "rews"):
            np.testing.assert_array_equal(one[field], two[field.replace("_", ".")])
    assert pack.where("environment = 'EveryKind-v0'").num_frames == demos.num_frames
    assert [step.sources["name"] for step in pack.lineage if step.sources] == [name]
    again = gm.pack(recorded.parent, tmp_path / "pack", existing="append")
    assert (again.known, again.runs) == (11, 11), "by what they hold"
    done = write(tmp_path / "again-v0", pack)
    assert (done.filled, done.lost) == ([], [])
    same(demos, gm.open(tmp_path / "again-v0"))
    assert {path.name for path in tmp_path.iterdir()} == {"pack", "again-v0"}, "the shards are gone"
    (tmp_path / "both").mkdir()
    shutil.copytree(recorded, tmp_path / "both" / name)
    (tmp_path / "both" / "demos.tar").touch()
    with pytest.raises(gm.ConfigError, match=r"both/demos\.tar; pack them apart"):
        gm.pack(tmp_path / "both", tmp_path / "none")


@pytest.mark.parametrize("form", FORMS)
def test_opening_reads_no_episode(tmp_path: Path, form: Any) -> None:
    """What is damaged is noticed when it is read: before that nothing read it."""
    write(tmp_path / "some-v0", gm.open(record(tmp_path, "some/every-v0", "hdf5", 4)), data_format=form)
    known = gm.open(tmp_path / "some-v0")[0].tobytes()
    file = tmp_path / "some-v0/data" / ("main_data.hdf5" if form == "hdf5" else "3/part-0.arrow")
    data = bytearray(file.read_bytes())
    if form == "hdf5":
        with h5py.File(file, "r") as opened:
            start = opened["episode_3/observations/image"].id.get_chunk_info(0).byte_offset
        data[start : start + 64] = b"x" * 64
    else:
        del data[100:]
    file.write_bytes(data)
    demos = gm.open(tmp_path / "some-v0")
    assert (demos.lengths, demos[0].tobytes()) == ([1, 2, 3, 4], known)
    with pytest.raises(gm.FormatError, match="episode 3: `observations") as refused:
        demos[3]
    assert (refused.value.source, refused.value.chunk) == (str(file), 3)
    with pytest.raises(gm.FormatError, match="episode 3"):
        demos.column("next_obs.image")
    if form == "hdf5":
        assert demos.column("acts.1").shape == (10, 2)


def write_pictures(folder: Path) -> Path:
    """Two fragments of 6 and 4 steps with pictures, in Atari's native form."""
    write_atari(folder / "pong.npz", [7, 5])
    return folder / "pong.npz"


@pytest.mark.parametrize("form", FORMS)
def test_native_demonstrations_become_minari_and_load(tmp_path: Path, form: Any) -> None:
    made = write_dm_control(tmp_path / "finger-spin-1.pkl.gz", [7, 1, 5])
    source = gm.open(tmp_path / "finger-spin-1.pkl.gz")
    done = write(tmp_path / "spin-v0", source, data_format=form, about={"author": ["us"]})
    assert done.filled == [
        "observation_space: found from the values",
        "action_space: found from the values",
        "infos.TimeLimit.truncated: filler where it is absent and `_TimeLimit.truncated` is false",
    ]
    demos = gm.open(tmp_path / "spin-v0")
    for i in range(3):
        for name in ("obs", "next_obs", "acts", "rews", "dones", "truncated"):
            np.testing.assert_array_equal(demos[i][name], source[i][name])
        assert_plain(demos.extras(i)["infos"], [{**info, "at": list(info["at"])} for info in made[i].infos])
    loader = gm.PairLoader(demos, gm.pairs.TemporalOffset("dynamics"), batch_size=4, seed=1)
    expected = gm.PairLoader(source, gm.pairs.TemporalOffset("dynamics"), batch_size=4, seed=1)
    for one, two in zip(loader, expected, strict=True):
        for name, array in one.asdict().items():
            np.testing.assert_array_equal(array, two.asdict()[name])
    episodes = by_minari(tmp_path, "spin-v0")
    np.testing.assert_array_equal(episodes[0].observations, made[0].obs)
    write_magical(tmp_path / "demo-0.pkl.gz", [0, 3, 0])
    magical = gm.open(tmp_path / "demo-0.pkl.gz")
    write(tmp_path / "views-v0", magical, data_format=form)
    np.testing.assert_array_equal(gm.open(tmp_path / "views-v0")[0]["next_obs.ego"], magical[0]["next_obs.ego"])
    assert gm.open(tmp_path / "views-v0").metadata["action_space"].state["n"] == 4


def test_columns_larger_than_memory_are_mapped(recorded: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(recorded, tmp_path / "some-v0"))
    demos, known = gm.open(folder, columns=tmp_path / "spill"), gm.open(folder)
    for name in ("obs.image", "dones"):
        column = demos.column(name)
        assert isinstance(column, np.memmap)
        np.testing.assert_array_equal(column, known.column(name))
    (kept,) = (tmp_path / "spill").iterdir()
    assert sorted(path.name for path in kept.iterdir()) == ["dones.npy", "obs.image.npy"]
    before = (kept / "dones.npy").stat().st_mtime_ns
    pickle.loads(pickle.dumps(demos)).column("dones")
    assert (kept / "dones.npy").stat().st_mtime_ns == before, "what is there is used again"
    write(folder, gm.open(recorded), overwrite=True, data_format="arrow")
    gm.open(folder, columns=tmp_path / "spill").column("dones")
    assert len(list((tmp_path / "spill").iterdir())) == 2, "what has changed is read again"


def test_infos_of_no_common_shape_are_read_as_they_are(recorded: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(recorded, tmp_path / "some-v0")) / "data"
    rows = [[1.0] * (t + 1) for t in range(4)]
    if (data / "main_data.hdf5").exists():
        with h5py.File(data / "main_data.hdf5", "r+") as file:
            held = file["episode_2/infos"].create_dataset("ragged", (4,), h5py.vlen_dtype(np.float64))
            for t, row in enumerate(rows):
                held[t] = row
    else:
        with pa.ipc.open_file(data / "2/part-0.arrow") as file:
            batch = file.read_all().combine_chunks().to_batches()[0]
        with pa.ipc.new_file(
            data / "2/part-0.arrow",
            batch.drop_columns("infos").schema.append(
                pa.field("infos", pa.struct([("ragged", pa.list_(pa.float64()))]))
            ),
        ) as writer:
            infos = pa.array([{"ragged": row} for row in rows])
            writer.write_batch(batch.drop_columns("infos").append_column("infos", infos))
    demos = gm.open(data)
    assert [list(info["ragged"]) for info in demos.extras(2)["infos"]] == rows[1:]
    with pytest.raises(gm.FormatError, match="ragged: values of several kinds or shapes"):
        write(tmp_path / "again-v0", demos)


def test_nothing_is_lost_in_silence(tmp_path: Path) -> None:
    seen = np.arange(10, dtype=np.float32).reshape(5, 2)
    rows: list[dict[str, Any]] = [
        {"obs": seen[t], "next_obs": seen[t + 1], "acts": t % 2, "dones": t == 3, "odd": [1] * t} for t in range(4)
    ]
    meta = {"env_cfg": {}, "color_space": "RGB"}
    box = gm.safe_pickle.Instance("Box", (), {"low": -np.inf, "high": np.inf, "shape": (2,), "dtype": "f4"})
    spaces = {"observation_space": box, "action_space": gm.safe_pickle.Instance("Discrete", (), {"n": 2})}
    gm.demos.write_frames(tmp_path / "a.tar.zst", {**meta, **spaces}, rows)
    with pytest.raises(gm.FormatError, match=r"infos\.odd: values of several kinds or shapes.*lossy=True"):
        write(tmp_path / "a-v0", gm.open(tmp_path / "a.tar.zst"))
    done = write(tmp_path / "a-v0", gm.open(tmp_path / "a.tar.zst"), lossy=True)
    assert done.lost == ["infos.odd: values of several kinds or shapes, which have no column"]
    apart = [{**row, "odd": 0, "next_obs": row["next_obs"] + (t == 1)} for t, row in enumerate(rows)]
    gm.demos.write_frames(tmp_path / "b.tar.zst", {**meta, **spaces}, apart)
    with pytest.raises(gm.FormatError, match=r"`next_obs` of step 1 is not `obs` of the step after") as refused:
        write(tmp_path / "b-v0", gm.open(tmp_path / "b.tar.zst"))
    assert (refused.value.chunk, refused.value.frame) == (0, 1)
    assert not (tmp_path / "b-v0").exists()
    alone = [{name: value for name, value in row.items() if name != "next_obs"} for row in rows]
    gm.demos.write_frames(tmp_path / "c.tar.zst", {**meta, **spaces}, alone)
    with pytest.raises(gm.ConfigError, match="no field is called `next_obs`"):
        write(tmp_path / "c-v0", gm.open(tmp_path / "c.tar.zst"))
    wide = gm.safe_pickle.Instance("Box", (), {"low": 0, "high": 1, "shape": (3,), "dtype": "f4"})
    with pytest.raises(gm.ConfigError, match=r"steps of shape \[2\]; its space says \[3\]"):
        write(tmp_path / "c-v0", gm.open(tmp_path / "b.tar.zst"), observation_space=wide, lossy=True)
    with pytest.raises(gm.ConfigError, match=r"NAME-vN"):
        write(tmp_path / "nameless", gm.open(tmp_path / "a.tar.zst"))


def test_a_data_set_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    source = gm.open(write_pictures(tmp_path))
    out = tmp_path / "some-v0"
    assert write(out, source, dry_run=True).steps == 10
    assert not out.exists()
    write(out, source)
    before = (out / "data/main_data.hdf5").read_bytes()
    with pytest.raises(FileExistsError, match="--overwrite"):
        write(out, source)

    def stop(done: int, _: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(out, source, overwrite=True, data_format="arrow", progress=stop)
    assert (out / "data/main_data.hdf5").read_bytes() == before
    write(out, source, overwrite=True, data_format="arrow")
    assert gm.open(out).format == "demo.minari.arrow"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pong.npz", "some-v0"]
    (tmp_path / "other-v0").mkdir()
    (tmp_path / "other-v0/thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="no Minari data set"):
        write(tmp_path / "other-v0", source, overwrite=True)


@pytest.mark.parametrize("form", FORMS)
def test_a_killed_writer_leaves_what_was_there(tmp_path: Path, form: Any) -> None:
    source, out = write_pictures(tmp_path), tmp_path / "some-v0"
    write(out, gm.open(source), data_format=form)
    before = gm.open(out)[1].tobytes()
    program = (
        "import os, signal, gristmill as gm\n"
        f"gm.demos.minari.write({str(out)!r}, gm.open({str(source)!r}), data_format={form!r}, overwrite=True,\n"
        "    progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert gm.open(out)[1].tobytes() == before
    # Killed between taking the old one away and putting the new one there: the next writer brings it back first.
    out.rename(tmp_path / ".some-v0.part/replaced")

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(out, gm.open(source), data_format=form, progress=stop)
    assert gm.open(out)[1].tobytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pong.npz", "some-v0"]


def test_the_example_in_both_forms(shared: Path) -> None:
    folder = shared / "vectors/demos/minari_example/cp"
    one, other = gm.open(folder / "hdf5-v0"), gm.open(folder / "arrow-v0/data")
    assert one.lengths == other.lengths == [18, 29, 14]
    assert [one.truncated(i) for i in range(3)] == [False] * 3
    assert one.metadata["observation_space"].state["high"][1] == np.inf
    assert one.metadata["lossy"] == [], "`jpeg_encoding` is set, and there are no pictures"
    assert one.metadata["env_cfg"]["task_name"] == "CartPole-v1"
    same(one, other)
    assert one[0]["obs"].dtype == np.float32
    np.testing.assert_array_equal(one[1]["next_obs"][:-1], one[1]["obs"][1:])
    assert (one[1]["next_obs"][-1] != one[1]["obs"][-1]).any()


@pytest.mark.parametrize(("module", "form"), [("h5py", "hdf5"), ("pyarrow", "arrow"), ("PIL.Image", "jpeg")])
def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, module: str, form: str) -> None:
    path = record(tmp_path, "some/every-v0", "arrow" if form == "jpeg" else form, 1, jpeg=form == "jpeg")
    program = (
        f"import sys\nsys.modules[{module!r}] = None\nimport gristmill as gm\n"
        f"try:\n    gm.open({str(path)!r})[0]\nexcept gm.MissingPackageError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "`pip install gristmill[minari]`" in done.stdout, done.stdout + done.stderr


def test_a_folder_of_something_else_is_none(tmp_path: Path) -> None:
    (tmp_path / "metadata.json").write_text("{}")
    with pytest.raises(gm.FormatError):
        gm.open(tmp_path)
    with pytest.raises(gm.FormatError, match="no Minari data set"):
        gm.demos.minari.open_minari(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(FileNotFoundError):
        gm.open(tmp_path)
