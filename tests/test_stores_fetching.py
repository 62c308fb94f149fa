"""What a pack in a bucket costs: the certificate says beforehand what the loader then asks for, and nothing else."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, serving
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill import stores

BLOCK = 256 << 10


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket `drops`: a pack of 2048 rows in several files, and a chess pack, of many blocks each."""
    folder = tmp_path_factory.mktemp("fetching")
    # Opening looks at the ends of runs and at 64 rows: of long runs there are blocks that it leaves.
    rows = np.tile(make_rows(1, steps=20_000), 30)
    rows["run_id"] = np.repeat(np.arange(30), 20_000)
    write_pack(folder / "drops" / "rows", rows, shard_rows=110_000)
    gm.checksum(folder / "drops" / "rows")
    gm.generate("chess", folder / "games", games=400, seed=3)
    gm.pack(folder / "games", folder / "drops" / "chess")
    for pack, name in (("rows", "steps*.npy"), ("chess", "games-*.chunks")):
        sizes = [file.stat().st_size for file in (folder / "drops" / pack).glob(name)]
        assert sum(sizes) > 10 * BLOCK, (pack, sizes)
    return folder


@pytest.fixture
def server(drops: Path, tmp_path: Path) -> Iterator[FaultServer]:
    with serving(drops, tmp_path / "twins") as server:
        yield server


def asked() -> tuple[int, int]:
    counts = stores.requests()["s3://drops"]
    return counts.requests, counts.bytes


def fed(loader: gm.DataLoader) -> tuple[int, int]:
    """Requests and bytes of all that a loader has."""
    before = asked()
    for _ in loader:
        pass
    after = asked()
    return after[0] - before[0], after[1] - before[1]


def loaded(pack: str, *, where: str = "", epochs: int = 1, memory: bool = False, **options: Any) -> gm.DataLoader:
    rows: Any = gm.open(f"s3://drops/{pack}", memory=memory)
    if pack == "rows":
        options["encoder"] = gm.g2048.Steps()
    return gm.DataLoader(rows.where(where) if where else rows, seed=3, epochs=epochs, **{"batch_size": 512, **options})


def planned(pack: str, cache: Path, *words: object, code: int = 0) -> dict[str, Any]:
    """What the command says."""
    program = Path(__file__).resolve().parents[1] / "target/debug/gristmill"
    if not program.exists():
        pytest.skip("skipped: the command is not built; run `cargo build`")
    all_words = ["plan", f"s3://drops/{pack}", "--cache", cache, "--seed", 3, "--require", "none", "--json", *words]
    if "--batch-size" not in words:
        all_words += ["--batch-size", 512]
    done = subprocess.run([program, *map(str, all_words)], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["fetching"]
    return found


SHUFFLES = {"rows": True, "off": False, "blocks:3000,3": gm.Blocks(3000, 3)}


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize(("pack", "size"), [("rows", 512), ("rows", 4000), ("chess", 64)])
def test_an_epoch_asks_for_what_was_planned(
    server: FaultServer, tmp_path: Path, pack: str, size: int, shuffle: str
) -> None:
    plan = planned(pack, tmp_path / "twins", "--shuffle", shuffle, "--batch-size", size)
    assert not (tmp_path / "twins").exists(), "a plan leaves the cache as it is"
    assert plan["holds"]
    assert plan["kept_bytes"] < plan["data_bytes"]
    loader = loaded(pack, shuffle=SHUFFLES[shuffle], batch_size=size)
    said = loader.certificate().fetching
    assert said is not None
    assert said["epochs"]["first"] == plan["epochs"]["first"]
    assert said["epochs"]["first"]["requests"] > 0
    requests, read = fed(loader)
    assert read == plan["epochs"]["first"]["bytes"]
    assert (requests, plan["epochs"]["error"]) == (plan["epochs"]["first"]["requests"], 0)
    assert plan["epochs"]["later"] == {"requests": 0, "bytes": 0}
    again = loaded(pack, shuffle=SHUFFLES[shuffle], batch_size=size, epochs=3)
    assert again.certificate().fetching["epochs"]["first"]["bytes"] == 0  # type: ignore[index]
    assert fed(again) == (0, 0)
    blocks = sum(file.stat().st_blocks * 512 for file in (tmp_path / "twins").rglob("*") if file.name != "name")
    assert blocks == pytest.approx(plan["epochs"]["disk_bytes"], abs=4096 * 3 * 40)


def test_only_selected_rows_are_fetched_and_counted(server: FaultServer, tmp_path: Path) -> None:
    some = planned("rows", tmp_path / "plan", "--where", "id < 7", "--shuffle", "off")
    loader = loaded("rows", where="id < 7", shuffle=False)
    assert fed(loader)[1] == some["epochs"]["first"]["bytes"]
    assert some["epochs"]["first"]["bytes"] < some["data_bytes"] / 4


def test_rows_that_an_epoch_drops_are_the_next_ones_to_fetch(server: FaultServer, tmp_path: Path) -> None:
    words = ("--shuffle", "off", "--last-batch", "drop", "--batch-size", 70_000)
    plan = planned("rows", tmp_path / "plan", *words)
    loader = loaded("rows", shuffle=False, batch_size=70_000, last_batch="drop")
    first = fed(loader)
    assert first[1] == plan["epochs"]["first"]["bytes"]
    assert plan["kept_bytes"] + first[1] < plan["data_bytes"]


def test_windows_fetch_the_steps_that_they_show(server: FaultServer) -> None:
    loader = loaded("rows", shuffle=gm.Blocks(3000, 2), view=gm.views.NextStep(5))
    said = loader.certificate().fetching
    assert said is not None
    assert fed(loader)[1] == said["epochs"]["first"]["bytes"]


def test_ranks_are_planned_as_each_of_them_fetches(server: FaultServer, tmp_path: Path) -> None:
    plan = planned("rows", tmp_path / "plan", "--world-size", 4, "--rank", 2, "--shuffle", "off")
    assert "each of 4 ranks" in plan["says"]
    loader = loaded("rows", shuffle=False, rank=2, world_size=4)
    assert fed(loader)[1] == plan["epochs"]["first"]["bytes"]


@pytest.mark.parametrize("pack", ["rows", "chess"])
def test_opening_asks_for_what_was_planned(server: FaultServer, drops: Path, tmp_path: Path, pack: str) -> None:
    plan = planned(pack, tmp_path / "plan")
    gm.open("s3://drops/rows", memory=True)
    before = asked()
    gm.open(f"s3://drops/{pack}")
    after = asked()
    assert after[1] - before[1] == plan["opening"]["bytes"]
    assert after[0] - before[0] == pytest.approx(plan["opening"]["requests"], abs=8), "to see what lies there"
    assert plan["metadata_bytes"] == (drops / "drops" / pack / "metadata.db").stat().st_size


def test_money_is_said_at_prices_that_are_given(server: FaultServer, tmp_path: Path) -> None:
    none = planned("rows", tmp_path / "plan")
    assert "money" not in none["epochs"]["first"]
    words = ("--price-get", 0.4, "--price-gb", 90, "--latency", 100, "--bandwidth", "1M")
    plan = planned("rows", tmp_path / "plan", *words)
    for cost in (plan["opening"], plan["epochs"]["first"], plan["epochs"]["later"]):
        assert cost["money"] == pytest.approx(cost["requests"] * 0.4 / 1000 + cost["bytes"] * 90 / 1e9)
    assert plan["epochs"]["first_batch_seconds"] > plan["opening"]["requests"] * 0.1
    said = loaded("rows").certificate(price_gb=90).fetching
    assert said is not None
    assert said["epochs"]["first"]["money"] == pytest.approx(said["epochs"]["first"]["bytes"] * 90 / 1e9)
    with pytest.raises(gm.ConfigError, match="price_get"):
        loaded("rows").certificate(price_get=-1)


@pytest.mark.parametrize("shuffle", ["rows", "blocks:3000,3"])
@pytest.mark.parametrize("pack", ["rows", "chess"])
def test_a_cache_that_is_too_small_is_said_and_the_change_that_is_named_mends_it(
    server: FaultServer, tmp_path: Path, pack: str, shuffle: str
) -> None:
    plan = planned(pack, tmp_path / "plan", "--cache-limit", 1_000_000, "--shuffle", shuffle)
    assert not plan["holds"]
    assert "epochs" not in plan, "numbers of a loader that is refused"
    assert "refuses to open it" in plan["says"]
    enough = plan["change"]["cache_limit"]
    stores.cache(tmp_path / "small", limit=1_000_000)
    with pytest.raises((OSError, gm.GristmillError), match="raise cache_limit"):
        loaded(pack)
    stores.cache(tmp_path / "enough", limit=enough)
    assert fed(loaded(pack, shuffle=SHUFFLES[shuffle]))[1] == plan["change"]["epochs"]["first"]["bytes"]


def test_what_is_not_fetched_has_no_price(server: FaultServer, drops: Path) -> None:
    assert loaded("chess", memory=True).certificate().fetching is None
    assert gm.DataLoader(gm.open(drops / "drops" / "chess"), batch_size=64).certificate().fetching is None


def test_the_texts_say_it(server: FaultServer) -> None:
    certificate = loaded("chess").certificate()
    assert certificate.fetching is not None
    said = certificate.fetching["says"]
    assert said.startswith("the cache holds the pack: the first epoch fetches")
    assert said in str(certificate)
    assert said in certificate._repr_html_()
