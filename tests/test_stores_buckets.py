"""Buckets: what they give is what a disk gives, through faults, kills and several processes; refusals that say why."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, serving
from generated_games import game, write_games, write_tar

import gristmill as gm
from gristmill import stores
from gristmill.command import parser
from gristmill.command.options import WrongWordsError


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket `drops`: folders of games, one with a tar; a chess pack, a pack of 2048 rows with values."""
    folder = tmp_path_factory.mktemp("buckets")
    bucket = folder / "drops"
    write_games(bucket / "games" / "a", 8)
    write_games(bucket / "games" / "b", 4, first=8)
    (bucket / "tars").mkdir()
    write_tar(bucket / "tars" / "games.tar", {f"training.{i}.gz": game(i, 20) for i in range(20, 26)})
    gm.pack(bucket / "games", bucket / "chess")
    gm.generate("2048", folder / "logs", games=5, seed=2)
    gm.pack(folder / "logs", bucket / "rows", shard_rows=500)
    gm.value_rows(bucket / "rows")
    return folder


@pytest.fixture
def server(drops: Path, tmp_path: Path) -> Iterator[FaultServer]:
    with serving(drops, tmp_path / "twins") as server:
        yield server


def batches(source: Any, **options: Any) -> list[dict[str, Any]]:
    loader = gm.DataLoader(source, batch_size=16, seed=3, epochs=1, **options)
    return [{name: np.asarray(batch[name]).copy() for name in batch.names} for batch in loader]


def agree(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    assert len(one) == len(two) > 1
    for left, right in zip(one, two, strict=True):
        assert left.keys() == right.keys()
        for name, values in left.items():
            np.testing.assert_array_equal(values, right[name], err_msg=name)


def stream(directory: Any, **more: Any) -> gm.DataLoader:
    return gm.DataLoader(
        gm.presets.lc0(directory, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off", **more)
    )


def planes(loader: gm.DataLoader) -> list[tuple[float, int]]:
    return [(float(np.asarray(batch["planes"]).sum()), batch.rows) for batch in loader]


@pytest.mark.parametrize(
    "below", ["games", "games/a", "tars", "tars/games.tar", "games/a/training.*[13].gz", "games/[ab]"]
)
def test_a_stream_from_a_bucket_is_the_stream_from_disk(server: FaultServer, drops: Path, below: str) -> None:
    found = planes(stream(f"s3://drops/{below}"))
    assert found == planes(stream(drops / "drops" / below))
    assert len(found) > 1


def test_a_stream_reads_each_game_with_one_request(server: FaultServer) -> None:
    planes(stream("s3://drops/games"))
    assert server.counts()["get"] == 12


@pytest.mark.parametrize("pack", ["chess", "rows"])
@pytest.mark.parametrize("memory", [False, True])
def test_a_pack_in_a_bucket_is_the_pack_on_disk(server: FaultServer, drops: Path, pack: str, memory: bool) -> None:
    encoder = {"encoder": gm.g2048.HardMove()} if pack == "rows" else {}
    there = gm.open(f"s3://drops/{pack}", memory=memory)
    here = gm.open(drops / "drops" / pack)
    agree(batches(there, **encoder), batches(here, **encoder))
    where = "steps > 100" if pack == "rows" else "frames > 20"
    assert len(there.where(where)) == len(here.where(where))


@pytest.mark.parametrize("fault", ["slow_down", "internal_error", {"drop": 100}, {"shifted": 3}, {"stall": 300}])
def test_batches_are_the_same_through_faults(server: FaultServer, drops: Path, fault: Any) -> None:
    here = batches(gm.open(drops / "drops" / "rows"), encoder=gm.g2048.HardMove())
    for after in range(0, 40, 8):
        server.fail(fault, operation="get", times=2, after=after)
    agree(batches(gm.open("s3://drops/rows"), encoder=gm.g2048.HardMove()), here)
    assert (stores.requests()["s3://drops"].retries > 0) == (fault != {"stall": 300})


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("pack", ["chess", "rows"])
def test_garbled_bytes_are_fetched_again(server: FaultServer, drops: Path, pack: str, after: int) -> None:
    encoder = {"encoder": gm.g2048.HardMove()} if pack == "rows" else {}
    here = batches(gm.open(drops / "drops" / pack), **encoder)
    key = "chunks" if pack == "chess" else "steps"
    server.fail("garbled", operation="get", key=key, after=after, times=1)
    there = None
    # What is read to open a pack may be refused with its place; chunks and rows are fetched again.
    with contextlib.suppress(gm.GristmillError, ValueError):
        there = batches(gm.open(f"s3://drops/{pack}"), **encoder)
    if there is None:
        there = batches(gm.open(f"s3://drops/{pack}"), **encoder)
    agree(there, here)


def test_a_loader_resumes_from_a_bucket_at_every_batch(server: FaultServer) -> None:
    def loader() -> gm.DataLoader:
        return gm.DataLoader(gm.open("s3://drops/chess"), batch_size=16, seed=3, epochs=1)

    whole, states = [], []
    first = loader()
    states.append(first.state_dict())
    for batch in first:
        whole.append(np.asarray(batch["planes"]).copy())
        states.append(first.state_dict())
    for at, state in enumerate(states[:-1]):
        again = loader()
        again.load_state_dict(state)
        rest = [np.asarray(batch["planes"]).copy() for batch in again]
        assert len(rest) == len(whole) - at
        for left, right in zip(rest, whole[at:], strict=True):
            np.testing.assert_array_equal(left, right)


def test_what_one_process_fetched_is_not_fetched_again(server: FaultServer) -> None:
    batches(gm.open("s3://drops/chess"))
    server.counts(reset=True)
    batches(gm.open("s3://drops/chess"))
    assert server.counts()["bytes"] < 200_000, "only what opening asks for"


def test_the_cache_keeps_within_its_bound(server: FaultServer, tmp_path: Path) -> None:
    stores.cache(tmp_path / "small", limit=1000)
    with pytest.raises((OSError, gm.GristmillError), match="raise cache_limit"):
        batches(gm.open("s3://drops/chess"))
    batches(gm.open("s3://drops/chess", memory=True))


def test_a_killed_process_leaves_a_cache_that_serves_right_bytes(
    server: FaultServer, drops: Path, tmp_path: Path
) -> None:
    code = textwrap.dedent(f"""
        import gristmill as gm
        gm.stores.cache({str(tmp_path / "killed")!r})
        while True:
            for batch in gm.DataLoader(gm.open("s3://drops/chess"), batch_size=4, epochs=1, seed=3):
                print("batch", flush=True)
    """)
    stores.cache(tmp_path / "killed")
    here = batches(gm.open(drops / "drops" / "chess"))
    for kill in range(4):
        server.mend()
        server.fail({"stall": 30 * kill}, operation="get")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02 * kill)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        server.mend()
        agree(batches(gm.open("s3://drops/chess")), here)


def test_jobs_read_buckets(server: FaultServer, drops: Path, tmp_path: Path) -> None:
    gm.pack("s3://drops/games", tmp_path / "pack")
    agree(batches(gm.open(tmp_path / "pack")), batches(gm.open(drops / "drops" / "chess")))
    assert gm.verify("s3://drops/chess").checks == gm.verify(drops / "drops" / "chess").checks


def test_refusals_name_the_url_and_say_what_to_do(server: FaultServer, drops: Path) -> None:
    with pytest.raises(FileNotFoundError, match="s3://drops/none"):
        gm.open("s3://drops/none")
    with pytest.raises((OSError, gm.GristmillError), match=r"NoSuchBucket|no such object"):
        gm.open("s3://nothing-here/x")
    with pytest.raises((OSError, ValueError), match="names no bucket"):
        gm.open("s3://")
    server.fail("access_denied")
    with pytest.raises(PermissionError, match=r"credentials.*s3://drops"):
        gm.open("s3://drops/chess")
    server.mend()
    server.fail("expired_token")
    with pytest.raises(OSError, match=r"400|ExpiredToken"):
        gm.open("s3://drops/chess")
    with pytest.raises(PermissionError, match="credentials have run out"):
        gm.pack(drops / "drops" / "games", "s3://drops/out")


def test_a_server_that_is_away_ends_in_words_within_its_time(drops: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.reach("s3://away", endpoint="http://127.0.0.1:9", anonymous=True, patience=1)
    began = time.monotonic()
    with pytest.raises(OSError, match=r"no good answer in .* tries.*refused"):
        gm.open("s3://away/pack")
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(("url", "options"), [("games", {}), ("s3://a/b", {}), ("s3://a", {"patience": 0})])
def test_reach_refuses_what_is_no_bucket(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"bucket|patience"):
        stores.reach(url, **options)


@pytest.mark.parametrize(("text", "limit"), [("0", 0), ("17", 17), ("3k", 3072), ("2T", 2 << 40)])
def test_commands_in_python_take_the_options_of_places(text: str, limit: int) -> None:
    words = parser().parse_args(["convert", "a", "b", "--endpoint", "http://x", "--anonymous", "--cache-limit", text])
    assert (words.endpoint, words.anonymous, words.cache_limit) == ("http://x", True, limit)
    with pytest.raises(WrongWordsError, match="number of bytes"):
        parser().parse_args(["convert", "a", "b", "--cache-limit", f"{text}B"])
