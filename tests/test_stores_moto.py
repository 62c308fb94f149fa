"""A second opinion on buckets: moto's S3 answers as the service does, and what boto3 put there is read as from disk."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import write_games

import gristmill as gm
from gristmill import stores

boto3 = pytest.importorskip("boto3", reason="skipped: needs moto[server]")
pytest.importorskip("moto.server", reason="skipped: needs moto[server]")


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moto")
    write_games(folder / "games", 12)
    gm.pack(folder / "games", folder / "chess")
    return folder


@pytest.fixture(scope="module")
def bucket(drops: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a bucket on a server of moto, with all files of `drops`."""
    said = tmp_path_factory.mktemp("server") / "said"
    with said.open("w") as out:
        line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        server = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT)
    try:
        address = _address(server, said)
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=address, **keys)
        client.create_bucket(Bucket="second-opinion")
        for path in sorted(path for path in drops.rglob("*") if path.is_file()):
            client.upload_file(str(path), "second-opinion", str(path.relative_to(drops)))
        with pytest.MonkeyPatch.context() as environment:
            for name, value in keys.items():
                environment.setenv(name.upper().replace("REGION_NAME", "AWS_REGION"), value)
            stores.reach("s3://second-opinion", endpoint=address, patience=20)
            yield "s3://second-opinion"
    finally:
        server.kill()
        server.wait()


def _address(server: "subprocess.Popen[bytes]", said: Path) -> str:
    for _ in range(600):
        found = [word for word in said.read_text().split() if word.startswith("http://127.0.0.1:")]
        if found:
            return found[0]
        assert server.poll() is None, said.read_text()
        time.sleep(0.1)
    raise AssertionError(f"moto did not say where it is: {said.read_text()}")


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
