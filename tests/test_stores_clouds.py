"""Azure against Azurite, Google Cloud against a server of the XML interface that it shares with S3."""

import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, built
from generated_games import write_games

import gristmill as gm
from gristmill import stores

#: The account that each Azurite has, with its key, as Azurite's own pages print them.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games and a pack of them, in a folder `clouds`."""
    folder = tmp_path_factory.mktemp("files") / "clouds"
    write_games(folder / "games", 12)
    gm.pack(folder / "games", folder / "chess")
    return folder


@pytest.fixture(autouse=True)
def twins(tmp_path: Path) -> Iterator[None]:
    stores.cache(tmp_path / "twins")
    yield
    stores.cache()


def agrees(url: str, files: Path) -> None:
    """A pack and a stream below a URL are those of the disk, and what is not there is missed by its URL."""

    def batches(source: Any) -> list[Any]:
        loader = gm.DataLoader(source, batch_size=16, seed=3, epochs=1)
        return [np.asarray(batch["planes"]).copy() for batch in loader]

    there, here = batches(gm.open(f"{url}/chess")), batches(gm.open(files / "chess"))
    assert len(there) == len(here) > 1
    for left, right in zip(there, here, strict=True):
        np.testing.assert_array_equal(left, right)

    def stream(directory: str) -> list[float]:
        config = gm.presets.lc0(directory, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off")
        return [float(np.asarray(batch["planes"]).sum()) for batch in gm.DataLoader(config)]

    assert stream(f"{url}/games") == stream(os.fspath(files / "games"))
    with pytest.raises(FileNotFoundError, match=f"{url}/none"):
        gm.open(f"{url}/none")


def put(address: str, path: str, query: dict[str, str], body: bytes, headers: dict[str, str]) -> None:
    """One signed request to Azurite, by which tests put things there."""
    said = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06", **headers}
    told = "".join(f"{name}:{said[name]}\n" for name in sorted(said))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{path}" + "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
    text = f"PUT\n\n\n{len(body) or ''}\n\n\n\n\n\n\n\n\n{told}{resource}"
    mark = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()
    words = "&".join(f"{name}={value}" for name, value in query.items())
    request = urllib.request.Request(
        f"{address}/{ACCOUNT}/{path}?{words}".rstrip("?"),
        data=body,
        method="PUT",
        headers={**said, "Authorization": f"SharedKey {ACCOUNT}:{mark}", "Content-Type": ""},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 201


@pytest.fixture(scope="module")
def azurite(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Azurite with the files in a container `clouds`."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("skipped: no azurite-blob (npm install --global azurite)")
    folder = tmp_path_factory.mktemp("azurite")
    with (folder / "said").open("w") as out:
        line = [program, "--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"]
        server = subprocess.Popen(line, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        address = listening(server, folder / "said")
        put(address, "clouds", {"restype": "container"}, b"", {})
        for path in sorted(path for path in files.rglob("*") if path.is_file()):
            name = f"clouds/{path.relative_to(files)}"
            put(address, name, {}, path.read_bytes(), {"x-ms-blob-type": "BlockBlob"})
        yield address
    finally:
        server.kill()
        server.wait()


def listening(server: "subprocess.Popen[bytes]", said: Path) -> str:
    for _ in range(600):
        _, found, address = said.read_text().partition("successfully listens on ")
        if found and address.endswith("\n"):
            return address.split()[0]
        assert server.poll() is None, said.read_text()
        time.sleep(0.1)
    raise AssertionError(f"Azurite did not say where it is: {said.read_text()}")


@pytest.mark.parametrize("scheme", ["az", "abfs", "abfss"])
def test_a_container_of_azure_is_read(azurite: str, files: Path, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    stores.reach(f"{scheme}://clouds", endpoint=f"{azurite}/{ACCOUNT}", patience=10)
    agrees(f"{scheme}://clouds", files)


def test_a_wrong_key_of_azure_is_refused_at_once(azurite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", base64.b64encode(b"wrong").decode())
    stores.reach("az://clouds", endpoint=f"{azurite}/{ACCOUNT}", patience=30)
    with pytest.raises(PermissionError, match=r"credentials.*az://clouds"):
        gm.open("az://clouds/chess")


def test_a_bucket_of_google_cloud_is_read(files: Path) -> None:
    with FaultServer(built(), files.parent, "--anonymous") as server:
        stores.reach("gs://clouds", endpoint=server.address, anonymous=True, patience=10)
        agrees("gs://clouds", files)
        server.fail("slow_down", times=2)
        before = stores.requests()["gs://clouds"].retries
        gm.open("gs://clouds/chess")
        assert stores.requests()["gs://clouds"].retries == before + 2
