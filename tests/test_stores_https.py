"""Web servers on loopback, with and without encryption; a server that cannot prove who it is is refused."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import Certificates, write_certificates
from generated_games import game, write_games, write_tar
from web_servers import files_of, served

import gristmill as gm
from gristmill import stores


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack, a tar of games and a game."""
    folder = tmp_path_factory.mktemp("web")
    write_games(folder / "games", 12)
    gm.pack(folder / "games", folder / "chess")
    write_tar(folder / "games.tar", {f"training.{i}.gz": game(i, 20) for i in range(20, 26)})
    return folder


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return write_certificates(tmp_path / "certificates")


@pytest.fixture(autouse=True)
def places(tmp_path: Path) -> Iterator[None]:
    stores.cache(tmp_path / "twins")
    yield
    stores.cache()


def batches(source: Any) -> list[dict[str, Any]]:
    loader = gm.DataLoader(source, batch_size=16, seed=3, epochs=1)
    return [{name: np.asarray(batch[name]).copy() for name in batch.names} for batch in loader]


def agree(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    assert len(one) == len(two) > 1
    for left, right in zip(one, two, strict=True):
        for name, values in left.items():
            np.testing.assert_array_equal(values, right[name], err_msg=name)


def stream(place: Any) -> list[float]:
    config = gm.presets.lc0(place, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off")
    return [float(np.asarray(batch["planes"]).sum()) for batch in gm.DataLoader(config)]


def test_packs_and_games_of_a_web_server_are_those_of_the_disk(files: Path) -> None:
    with served(files_of(files)) as url:
        agree(batches(gm.open(f"{url}/chess")), batches(gm.open(files / "chess")))
        assert stream(f"{url}/games") == stream(files / "games")
        with pytest.raises(FileNotFoundError, match=f"{url}/none"):
            gm.open(f"{url}/none")


def test_a_server_that_lists_nothing_has_files_by_name(files: Path) -> None:
    with served(files_of(files, lists=False)) as url:
        assert stream(f"{url}/games.tar") == stream(files / "games.tar")
        with pytest.raises(OSError, match="405"):
            stream(f"{url}/games")


def test_an_encrypted_server_is_read_where_its_authority_is_trusted(
    files: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    with served(files_of(files), certificates) as url:
        assert url.startswith("https://")
        agree(batches(gm.open(f"{url}/chess")), batches(gm.open(files / "chess")))
        assert stream(f"{url}/games.tar") == stream(files / "games.tar")


@pytest.mark.parametrize("wrong", ["authority", "host"])
def test_a_server_that_cannot_prove_who_it_is_is_refused_at_once(
    files: Path, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    others = write_certificates(tmp_path / "others", "elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(others.authority))
    with served(files_of(files), certificates if wrong == "authority" else others) as url:
        stores.reach(url, patience=60)
        began = time.monotonic()
        with pytest.raises(OSError, match=r"invalid peer certificate.*SSL_CERT_FILE") as caught:
            gm.open(f"{url}/chess")
        assert time.monotonic() - began < 20, "nothing would change by asking again"
        assert url in str(caught.value)
