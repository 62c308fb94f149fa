"""Stores of obstore and fsspec: the place that each means is read and written as by its URL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, built
from generated_games import write_games

import gristmill as gm
from gristmill import stores

obstore = pytest.importorskip("obstore.store", reason="skipped: needs obstore")
fsspec = pytest.importorskip("fsspec", reason="skipped: needs fsspec")


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket `handed` with games, and a pack of them."""
    folder = tmp_path_factory.mktemp("stores")
    write_games(folder / "handed" / "games", 8)
    gm.pack(folder / "handed" / "games", folder / "handed" / "packs" / "june")
    return folder


@pytest.fixture
def server(packs: Path, tmp_path: Path) -> Iterator[FaultServer]:
    """The bucket on a server of which the environment knows nothing."""
    with FaultServer(built(), packs) as server:
        stores.cache(tmp_path / "twins")
        yield server
    stores.cache()


def keys(server: FaultServer) -> dict[str, str]:
    return {
        "endpoint": server.address,
        "region": "us-east-1",
        "access_key_id": "test",
        "secret_access_key": "testtest",
    }


def agree(place: str, packs: Path) -> None:
    there, here = gm.open(place), gm.open(packs / "handed" / "packs" / "june")
    assert len(there) == len(here)
    one, two = (np.asarray(gm.DataLoader(pack, batch_size=32, seed=1).get_next()["planes"]) for pack in (there, here))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("prefix", [None, "packs", "packs/"])
def test_a_store_of_obstore_is_its_bucket(server: FaultServer, packs: Path, prefix: str | None) -> None:
    store = obstore.S3Store("handed", prefix=prefix, client_options={"allow_http": True}, **keys(server))
    place = stores.at(store, "june" if prefix else "packs/june")
    assert place == "s3://handed/packs/june"
    agree(place, packs)
    config = gm.presets.lc0(stores.at(obstore.S3Store("handed", **keys(server)), "games"), epochs=1, reservoir=64)
    assert sum(batch.rows for batch in gm.DataLoader(config)) > 0


def test_other_stores_of_obstore_have_their_places(packs: Path, tmp_path: Path) -> None:
    local = obstore.LocalStore(packs / "handed")
    agree(stores.at(local, "packs/june"), packs)
    assert stores.at(obstore.LocalStore(packs)) == str(packs)
    azure = obstore.AzureStore("box", account_name="me", skip_signature=True, prefix="a")
    assert stores.at(azure, "/b/") == "az://box/a/b"
    assert stores.at(obstore.GCSStore("heap", skip_signature=True)) == "gs://heap"
    assert stores.at(obstore.HTTPStore("http://127.0.0.1:9/x"), "y") == "http://127.0.0.1:9/x/y"
    with pytest.raises(TypeError, match="MemoryStore has no place"):
        stores.at(obstore.MemoryStore())


def test_file_systems_of_fsspec_have_their_places(packs: Path) -> None:
    agree(stores.at(fsspec.filesystem("file"), str(packs / "handed" / "packs" / "june")), packs)
    with pytest.raises(TypeError, match="`memory` cannot be read here"):
        stores.at(fsspec.filesystem("memory"), "/x")
    for wrong in (None, 7, "s3://handed", Path("x")):
        with pytest.raises(TypeError, match=r"expected a store of obstore or a file system of fsspec"):
            stores.at(wrong)
    # What fsspec caches has a twin here.
    assert len(gm.open(f"simplecache::file://{packs}/handed/packs/june")) == len(gm.open(packs / "handed/packs/june"))


def test_s3fs_is_its_bucket(server: FaultServer, packs: Path) -> None:
    pytest.importorskip("s3fs", reason="skipped: needs s3fs, which goes with no moto of today")
    words: dict[str, Any] = {"key": "test", "secret": "testtest", "endpoint_url": server.address}
    files = fsspec.filesystem("s3", client_kwargs={"region_name": "us-east-1"}, **words)
    agree(stores.at(files, "handed/packs/june"), packs)


def test_settings_that_are_none_are_refused_by_name(server: FaultServer) -> None:
    stores.reach("s3://handed", endpoint=server.address, settings={"colour": "red"})
    with pytest.raises((gm.ConfigError, OSError), match=r"s3://handed.*colour"):
        gm.open("s3://handed/packs/june")
    stores.reach("s3://handed")
