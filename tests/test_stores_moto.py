"""A second opinion on buckets: moto's S3 answers as the service does, and what boto3 put there is read as from disk."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import write_certificates
from generated_games import write_games
from moto_server import KEYS, moto, use_keys

import gristmill as gm
from gristmill import stores

boto3 = pytest.importorskip("boto3", reason="skipped: needs moto[server]")
pytest.importorskip("moto.server", reason="skipped: needs moto[server]")

#: What a writer elsewhere says of itself.
CLAIM = {"writer": "x", "host": "there", "process": 7, "since": 1, "renewed": 2}

#: Where the servers of buckets are.
ADDRESSES: dict[str, str] = {}


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moto")
    write_games(folder / "games", 12)
    gm.pack(folder / "games", folder / "chess")
    (folder / "taken").mkdir()
    (folder / "taken" / ".writer.json").write_text(json.dumps(CLAIM))
    return folder


def fill(name: str, drops: Path, address: str, **more: Any) -> None:
    """Makes a bucket with all files of `drops`."""
    client = boto3.client("s3", endpoint_url=address, **KEYS, **more)
    client.create_bucket(Bucket=name)
    for path in sorted(path for path in drops.rglob("*") if path.is_file()):
        client.upload_file(str(path), name, str(path.relative_to(drops)))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    use_keys(monkeypatch)


@pytest.fixture(scope="module")
def bucket(drops: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket on a server of moto, with all files of `drops`."""
    with moto(tmp_path_factory.mktemp("server")) as address:
        fill("second-opinion", drops, address)
        stores.reach("s3://second-opinion", endpoint=address, patience=20)
        ADDRESSES["s3://second-opinion"] = address
        yield "s3://second-opinion"


def batches(source: Any) -> list[Any]:
    loader = gm.DataLoader(source, batch_size=16, seed=3, epochs=1)
    return [{name: np.asarray(batch[name]).copy() for name in batch.names} for batch in loader]


def test_a_pack_and_a_stream_are_those_of_the_disk(bucket: str, drops: Path, tmp_path: Path) -> None:
    stores.cache(tmp_path / "twins")
    for there, here in zip(batches(gm.open(f"{bucket}/chess")), batches(gm.open(drops / "chess")), strict=True):
        for name, values in here.items():
            np.testing.assert_array_equal(there[name], values, err_msg=name)

    def stream(directory: str) -> list[float]:
        config = gm.presets.lc0(directory, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off")
        return [float(np.asarray(batch["planes"]).sum()) for batch in gm.DataLoader(config)]

    assert stream(f"{bucket}/games") == stream(os.fspath(drops / "games"))
    stores.cache()


def test_refusals_are_those_of_the_service(bucket: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{bucket}/none"):
        gm.open(f"{bucket}/none")


def test_a_bucket_is_read_over_an_encrypted_connection(
    drops: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_certificates(tmp_path / "certificates", "127.0.0.1")
    stores.cache(tmp_path / "twins")
    with moto(tmp_path, "-c", files.server, "-k", files.key) as address:
        assert address.startswith("https://")
        fill("encrypted", drops, address, verify=str(files.authority))
        stores.reach("s3://encrypted", endpoint=address, patience=20)
        with pytest.raises(OSError, match=r"invalid peer certificate.*SSL_CERT_FILE"):
            gm.open("s3://encrypted/chess")
        monkeypatch.setenv("SSL_CERT_FILE", str(files.authority))
        stores.reach("s3://encrypted", endpoint=address, patience=20)
        there, here = batches(gm.open("s3://encrypted/chess")), batches(gm.open(drops / "chess"))
        assert len(there) == len(here) > 1
        np.testing.assert_array_equal(there[0]["planes"], here[0]["planes"])
    stores.cache()


def test_a_pack_is_written_as_on_a_disk_and_never_over_another(bucket: str, drops: Path, tmp_path: Path) -> None:
    stores.cache(tmp_path / "twins")
    gm.pack(drops / "games", f"{bucket}/written")
    there, here = gm.open(f"{bucket}/written"), gm.open(drops / "chess")
    np.testing.assert_array_equal(batches(there)[0]["planes"], batches(here)[0]["planes"])
    with pytest.raises(gm.ConfigError, match="is there already"):
        gm.pack(drops / "games", f"{bucket}/written")
    loader = gm.DataLoader(here, batch_size=16, seed=3)
    loader.save(f"{bucket}/state.json")
    gm.DataLoader(here, batch_size=16, seed=3).load(f"{bucket}/state.json")
    stores.cache()


def test_a_pack_is_added_to_by_the_mark_of_its_manifest(bucket: str, drops: Path, tmp_path: Path) -> None:
    games = sorted((drops / "games").iterdir())
    (tmp_path / "few").mkdir()
    for game in games[:4]:
        (tmp_path / "few" / game.name).write_bytes(game.read_bytes())
    place = f"{bucket}/grows"
    gm.pack(tmp_path / "few", place)
    old = gm.open(place)
    assert gm.pack(drops / "games", place, existing="append").known == 4
    assert (len(gm.open(place)), len(old)) == (len(gm.open(drops / "chess")), len(gm.open(place).where("id < 4")))
    client = boto3.client("s3", endpoint_url=ADDRESSES[bucket], **KEYS)
    manifest = client.get_object(Bucket="second-opinion", Key="grows/manifest.json")["Body"].read()
    assert json.loads(manifest)["format"] == "gristmill.pack.versions"
    assert stores.clean(place).whole


def test_a_claim_of_another_writer_is_kept(bucket: str, drops: Path, tmp_path: Path) -> None:
    stores.cache(tmp_path / "twins")
    with pytest.raises(gm.ConfigError, match=r"process 7 of there.*gristmill clean"):
        gm.pack(drops / "games", f"{bucket}/taken")
    assert stores.clean(f"{bucket}/taken").claim == CLAIM
    gm.pack(drops / "games", f"{bucket}/taken")
    stores.cache()


def test_shares_are_joined_as_on_a_disk(bucket: str, drops: Path, tmp_path: Path) -> None:
    out = f"{bucket}/shared"
    for number in (2, 1, 3, 1):
        # Each on a machine of its own.
        stores.cache(tmp_path / f"twins{number}")
        made = gm.pack(drops / "games", out, share=(number, 3))
        assert made.share is not None
    with pytest.raises(gm.ConfigError, match="number of shares: 3 there, 4 now"):
        gm.pack(drops / "games", out, share=(1, 4))
    assert gm.shares(out).done == 3
    gm.commit(out)
    client = boto3.client("s3", endpoint_url=ADDRESSES[bucket], **KEYS)
    keys = [found["Key"] for found in client.list_objects_v2(Bucket="second-opinion", Prefix="shared")["Contents"]]
    files = {path.name: path.read_bytes() for path in (drops / "chess").iterdir() if path.is_file()}
    assert sorted(keys) == sorted(f"shared/{name}" for name in files), "the shares are gone"
    for name, data in files.items():
        body = client.get_object(Bucket="second-opinion", Key=f"shared/{name}")["Body"].read()
        assert body == data, name
    with pytest.raises(gm.ConfigError, match="committed already"):
        gm.commit(out)
    stores.cache()
