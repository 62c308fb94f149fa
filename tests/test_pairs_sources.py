"""What pairs and steps are made of: dictionaries of arrays, slices of data, parts of observations, functions."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import write_dm_control, write_magical
from steps_in_memory import columns, same
from test_demos_writer import META, frames

import gristmill as gm
from gristmill.demos import write_frames

FINGER = {"benchmark_name": "dm_control", "task_name": "finger-spin"}


def shard(folder: Path, name: str = "demos.tar") -> gm.Demos:
    (path,) = write_frames(folder / name, META, frames([7, 1, 5, 3]))
    demos: gm.Demos = gm.open(path)
    return demos


def test_a_dictionary_of_arrays_is_a_data_set(tmp_path: Path) -> None:
    write_dm_control(tmp_path / "data/dm_control/finger-spin-a.pkl.gz", [6, 4])
    arrays = gm.load_dataset_dict(FINGER, {"data_root": str(tmp_path)})
    lengths = gm.pairs.Columns.from_dict(arrays).lengths
    assert lengths == [6, 4]
    infos = arrays["infos"].tolist()
    own = gm.pairs.Columns(lengths, {name: a for name, a in arrays.items() if name != "infos"}, infos)
    for steps in (gm.pairs.BC, gm.pairs.GAIL):
        one, other = (gm.StepLoader(data, steps, batch_size=3, seed=2) for data in (arrays, own))
        for found, expected in zip(one, other, strict=True):
            assert [f"{info}" for info in found.pop("infos", [])] == [f"{info}" for info in expected.pop("infos", [])]
            assert same(found, expected)
    dynamics = gm.pairs.TemporalOffset("dynamics", 2)
    here, there = (gm.PairLoader([data, data], dynamics, batch_size=3, seed=2) for data in (arrays, own))
    assert all(map(same, here, there))
    assert same(dynamics.over(arrays)[:], dynamics.over(own)[:])
    there.load_state_dict(here.state_dict())


def test_where_the_episodes_of_a_dictionary_end() -> None:
    def lengths(**arrays: Any) -> list[int]:
        return gm.pairs.Columns.from_dict({name: np.array(a) for name, a in arrays.items()}).lengths

    assert lengths(dones=[False, True, False, True]) == [2, 2]
    assert lengths(dones=[0, 1, 0, 0]) == [2, 2], "what follows the last end is one trajectory more"
    assert lengths(dones=[False] * 4) == [4]
    assert lengths(dones=[False] * 4, truncated=[False, True, False, False]) == [2, 2]
    assert lengths(dones=np.zeros(0, bool)) == []
    refused: list[tuple[dict[str, Any], str]] = [
        ({"obs": np.zeros(3), "acts": np.zeros(3)}, "no `dones` among obs, acts"),
        ({"obs": np.zeros(3), "dones": np.zeros(4, bool)}, "`obs` has 3 rows"),
        ({"dones": np.zeros(4, bool), "infos": np.array([{}], object)}, "`infos` has 1 rows"),
        ({"dones": np.zeros(2, bool), "note": np.array(["a", None], object)}, "`note` holds Python objects"),
        ({"dones": np.bool_(True)}, "`dones` is one value"),
    ]
    for arrays, says in refused:
        with pytest.raises(gm.ConfigError, match=says):
            gm.StepLoader(arrays, batch_size=1)


@pytest.mark.parametrize("form", ["demos.tar", "demos.tar.zst", "spilled"])
def test_a_slice_of_demonstrations_is_a_data_set(tmp_path: Path, form: str) -> None:
    demos = shard(tmp_path, "demos.tar" if form == "spilled" else form)
    if form == "spilled":
        demos = gm.open(tmp_path / "demos.tar", columns=tmp_path / "columns")
    some = demos[1:3]
    assert (len(some), some.lengths, some.num_frames, some.frames(-1)) == (2, [1, 5], 6, 5)
    np.testing.assert_array_equal(some[0], demos[1])
    assert [len(records) for records in some] == [1, 5]
    assert [len(records) for records in list(demos[:2])] == [7, 1]
    assert some.metadata["color_space"] == demos.metadata["color_space"]
    assert (some.truncated(1), some.extras(1)["note"]) == (demos.truncated(2), demos.extras(2)["note"])
    for which in (slice(1, 3), slice(0, 1), slice(3, 4), slice(None, None, -1), slice(None, None, 2), slice(2, 2)):
        part, chosen = demos[which], range(4)[which]
        expected = [demos[i] for i in chosen]
        for name in ("obs", "dones"):
            column = part.column(name)
            assert column.dtype == demos.column(name).dtype
            np.testing.assert_array_equal(
                column, np.concatenate([demos.column(name)[:0], *(e[name] for e in expected)])
            )
    assert demos[1:][0:2].lengths == [1, 5], "slices of slices"
    assert len(demos[7:9]) == 0
    with pytest.raises(IndexError):
        some[2]
    with pytest.raises(gm.FormatError, match="no field `x` among"):
        some.column("x")
    steps = list(gm.StepLoader(some, gm.pairs.Steps(("rews", "infos")), batch_size=2, shuffle=False))
    assert [float(reward) for batch in steps for reward in batch["rews"]] == [0, 0, 1, 2, 3, 4]
    assert [info["t"] for batch in steps for info in batch["infos"]] == [0, 0, 1, 2, 3, 4]
    assert gm.load_dataset_dict(some)["rews"].tolist() == [0, 0, 1, 2, 3, 4]
    pairs = gm.pairs.TemporalOffset(None, 2).over(demos[0:3:2])
    assert len(pairs) == 5 + 3


def test_a_slice_of_a_part_is_a_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "data/processed/demos/dm_control/cheetah-run"
    shard(folder)
    part = gm.load_wds_datasets(
        [{"env_cfg": {"task_name": "cheetah-run"}}], env_data={"data_root": str(tmp_path), "wds_n_trans": 10}
    ).datasets[0]
    assert part.lengths == [7, 1, 2]
    some = part[1:]
    assert (some.lengths, [len(records) for records in some]) == ([1, 2], [1, 2])
    assert [some.truncated(i) for i in range(2)] == [False, True]
    assert len(some.extras(1)["infos"]) == 2
    assert some.column("rews").tolist() == [0, 0, 1]
    assert gm.load_dataset_dict(part)["rews"].tolist() == [*range(7), 0, 0, 1]


def test_parts_of_observations_make_pairs(tmp_path: Path) -> None:
    write_magical(tmp_path / "a.pkl.gz", [1, 2, 3, 4])
    demos = gm.open(tmp_path / "a.pkl.gz")
    wide = gm.pairs.Prepare(check_nchw=False, images="keep")
    for constructor, other in [
        (gm.pairs.Identity(obs="obs.ego"), gm.pairs.Identity()),
        (gm.pairs.TemporalOffset("dynamics", 2, obs="obs.ego"), gm.pairs.TemporalOffset("dynamics", 2)),
        (gm.pairs.Reverse(1, obs="obs.ego"), gm.pairs.Reverse(1)),
        (gm.pairs.UniformOffset(1, 2, obs="obs.ego"), gm.pairs.UniformOffset(1, 2)),
        (gm.pairs.Windows(2, obs="obs.ego"), gm.pairs.Windows(2)),
        (gm.pairs.FrameStack(2, obs="obs.ego"), gm.pairs.FrameStack(2)),
    ]:
        plain = gm.pairs.Columns(
            demos.lengths,
            {"obs": demos.column("obs.ego"), "acts": demos.column("acts"), "dones": demos.column("dones")},
        )
        one = gm.PairLoader(demos, constructor, batch_size=2, seed=1, prepare=wide)
        two = gm.PairLoader(plain, other, batch_size=2, seed=1, prepare=wide)
        again = pickle.loads(pickle.dumps(one))
        for found, expected, travelled in zip(one, two, again, strict=True):
            assert same(found, expected)
            assert same(found, travelled)
        with pytest.raises(gm.ConfigError, match=r"has no `obs`; it has .*Choose one of its parts: obs='obs\.allo'"):
            other.over(demos)
    # The same data as a dictionary of arrays has other names for the parts.
    arrays = gm.load_dataset_dict(demos)
    assert "obs_ego" in arrays
    by_either = [gm.pairs.Identity(obs=name).over(data) for name in ("obs.ego", "obs_ego") for data in (demos, arrays)]
    assert all(same(pairs[:], by_either[0][:]) for pairs in by_either)
    more: dict[str, Any] = {"acts.0": np.arange(5)}
    acted = columns([5], shape=(3,), **more)
    pairs = gm.pairs.TemporalOffset("action_prediction", action="acts.0").over(acted)
    assert pairs[:].target.tolist() == [[0], [1], [2], [3]]


def test_states_know_which_part_of_the_observations_is_meant(tmp_path: Path) -> None:
    write_magical(tmp_path / "a.pkl.gz", [1, 2, 3, 4])
    demos = gm.open(tmp_path / "a.pkl.gz")

    def state(obs: str) -> dict[str, Any]:
        return gm.PairLoader(demos, gm.pairs.TemporalOffset(obs=obs), batch_size=2).state_dict()

    with pytest.raises(gm.StateError, match=r"config\.pairs\.obs is 'obs\.ego', here 'obs\.allo'"):
        gm.PairLoader(demos, gm.pairs.TemporalOffset(obs="obs.allo"), batch_size=2).load_state_dict(state("obs.ego"))
    # Where it is the usual field, states say what they said before there was a choice.
    usual = gm.PairLoader(columns([9]), gm.pairs.TemporalOffset("dynamics", 2), batch_size=2).state_dict()
    assert usual["config"]["pairs"] == {"kind": "TemporalOffset", "mode": "dynamics", "temporal_offset": 2}
    windows = gm.PairLoader(columns([9]), gm.pairs.Windows(2), batch_size=2).state_dict()
    assert windows["config"]["pairs"] == {"kind": "Windows", "size": 2, "fill": "first", "acts": "last"}


def temporal(mode: str, offset: int) -> Any:
    """A constructor as projects write it: rings of observations and actions, emptied at each end."""

    def pairs(steps: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        trajectory, time = 0, 0
        seen: list[Any] = []
        done: list[Any] = []
        for step in steps:
            if len(seen) == offset:
                acts = np.stack(done[-offset:])
                context = {"context": seen[0], "traj_ts_ids": [trajectory, time]}
                if mode == "dynamics":
                    yield {**context, "target": step["obs"], "extra_context": acts}
                else:
                    yield {**context, "target": acts, "extra_context": []}
                seen = seen[1:]
            seen, done, time = [*seen, step["obs"]], [*done, step["acts"]], time + 1
            if step["dones"]:
                trajectory, time, seen, done = trajectory + 1, 0, [], []

    return pairs


@pytest.mark.parametrize("mode", ["dynamics", "action_prediction"])
def test_a_function_over_steps_is_a_constructor(mode: str) -> None:
    data = columns([7, 1, 5])
    own = gm.PairLoader(data, gm.pairs.TemporalOffset(mode, 2), batch_size=4, seed=3)  # type: ignore[arg-type]
    given = gm.PairLoader(data, temporal(mode, 2), batch_size=4, seed=3)
    travelled = pickle.loads(pickle.dumps(given))
    for _ in range(3):
        for expected, found, other in zip(own, given, travelled, strict=True):
            assert same(found, expected)
            assert same(other, expected), "the pairs travel, where the function cannot"
    pairs = gm.pairs.Generated(temporal(mode, 2)).over(data)
    kinds = {key.partition(" ")[0]: bool(key.partition(" ")[2]) for key in pairs.drawn}
    assert kinds["context"], "observations are kept as numbers of steps"
    again = gm.PairLoader(data, temporal(mode, 2), batch_size=4, seed=3)
    again.load_state_dict(given.state_dict())
    with pytest.raises(gm.StateError, match=r"data\[0\]\.hash is"):
        gm.PairLoader(data, temporal(mode, 1), batch_size=4, seed=3, nominal_length=8).load_state_dict(
            gm.PairLoader(data, temporal(mode, 2), batch_size=4, seed=3).state_dict() | {}
        )


def test_functions_that_pass_the_same_array_twice() -> None:
    def identity(steps: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for step in steps:
            yield {"context": step["obs"], "target": step["obs"], "traj_ts_ids": [0, step["frame"]]}

    batch = next(iter(gm.PairLoader(columns([7, 5]), identity, batch_size=4, seed=1)))
    own = next(iter(gm.PairLoader(columns([7, 5]), batch_size=4, seed=1)))
    assert batch.target is batch.context
    np.testing.assert_array_equal(batch.context, own.context)
    assert batch.extra_context is None


def test_ends_are_told_to_functions_also_where_a_trajectory_was_cut() -> None:
    data = columns([3, 4], dones=np.zeros(7, bool))
    seen: list[tuple[int, bool, bool]] = []

    def look(steps: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for step in steps:
            seen.append((step["frame"], bool(step["dones"]), step["obs"].flags.writeable))
            yield {"context": step["obs"] * 2, "target": step["acts"], "extra_context": [], "traj_ts_ids": (0, 0)}

    pairs = gm.pairs.Generated(look).over(data)
    assert seen == [(t, t in (2, 6), False) for t in range(7)]
    np.testing.assert_array_equal(pairs[:].context, data.column("obs") * 2)
    assert pairs[[4, 1]].target.tolist() == [4, 1]


def test_functions_that_give_no_pairs_are_refused() -> None:
    def giving(*pairs: Any) -> Any:
        return lambda steps: iter(pairs)

    good = {"context": np.zeros(2), "target": np.zeros(2), "extra_context": [], "traj_ts_ids": [0, 0]}
    for function, says in [
        (giving(), "gives no pairs"),
        (giving((1, 2)), "pair 0 .* is tuple; expected a dictionary of context"),
        (giving(good, {**good, "more": 1}), r"pair 1 .*'more'"),
        (giving(good, {**good, "context": np.zeros(3)}), "`context` .* one type and shape"),
        (giving(good, {**good, "extra_context": np.zeros(3)}), "`extra_context` for 1 of 2 pairs"),
        (giving({**good, "target": {}}), "`target` .* no array of numbers"),
    ]:
        with pytest.raises(gm.ConfigError, match=says):
            gm.PairLoader(columns([4]), function, batch_size=1)
    with pytest.raises(gm.ConfigError, match="more than max_bytes=40"):
        gm.pairs.Generated(giving(good, good), max_bytes=40).over(columns([4]))
    with pytest.raises(TypeError, match="expected a constructor of pairs or a function, found int"):
        gm.PairLoader(columns([4]), 7, batch_size=1)  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="no `acts`"):
        gm.PairLoader({"obs": np.zeros(3), "dones": np.zeros(3, bool)}, giving(good), batch_size=1)
