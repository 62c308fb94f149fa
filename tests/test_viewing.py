"""`gm.view`: pages of data and of loaders, served from Python; how they end, and what cannot be shown."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import gristmill as gm


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewing")
    gm.generate("chess", folder / "games", games=20, seed=1, plies_max=40)
    gm.pack(folder / "games", folder / "packed")
    return folder / "packed"


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return str(answer.read().decode())


def test_paths_packs_files_and_selections_are_shown(packed: Path) -> None:
    pack = gm.open(packed)
    file = next((packed.parent / "games").glob("*.gz"))
    shown = [packed, str(packed), pack, pack.games, file, gm.open(file), packed.parent, "file://" + str(packed)]
    for what in shown:
        with gm.view(what) as pages:
            assert urlsplit(pages.url).hostname == "127.0.0.1"
            assert not pages.open
            assert "<h1>" in page(pages.url), what
            assert pages.url in repr(pages)
            assert f'href="{pages.url}"' in pages._repr_html_()
    few = pack.where("id IN (3, 4, 5, 9)")
    for what in (few, few.games):
        with gm.view(what) as pages:
            assert "1\u20134 of 4" in page(pages.url)
    with gm.view(pack.where("id < 0")) as pages:
        assert "Nothing here" in page(pages.url)


def test_games_that_no_address_names_are_said_to_be_too_many(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.jobs.viewing._LONGEST", 20)
    with pytest.warns(UserWarning, match="10 games in 10 places"), gm.view(gm.open(packed).where("id % 2")) as pages:
        assert urlsplit(pages.url).query == ""


def test_loaders_are_shown(packed: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(packed.parent / "games", batch_size=8, reservoir=8, seed=1)) as loader:
        loader.get_next()
        with gm.view(loader) as pages:
            assert "Stages, from files to the trainer" in page(pages.url)
            assert json.loads(page(pages.url + "run.json"))["status"]["process"] == os.getpid()
        address = loader.serve_metrics("127.0.0.1:0")
        for what in (address, f"http://{address}", f"http://{address}/metrics", address.rpartition(":")[2]):
            with gm.view(what) as pages:
                assert f"Run at {address}" in page(pages.url)
        token = "0123456789abcdef"
        address = loader.serve_metrics("127.0.0.1:0", token=token)
        with pytest.raises(ConnectionError, match="wants a token"):
            gm.view(address)
        with gm.view(address, token=token) as pages:
            assert "Run at" in page(pages.url)
    rows = gm.DataLoader(gm.open(packed), batch_size=4, seed=1)
    with rows, gm.view(rows) as pages:
        assert "Run at" in page(pages.url)


def test_closing_ends_it_and_a_second_time_does_nothing(packed: Path) -> None:
    pages = gm.view(packed)
    assert not pages.closed
    pages.close()
    pages.close()
    assert pages.closed
    assert "closed" in repr(pages)
    with pytest.raises(urllib.error.URLError):
        page(pages.url)


def test_nothing_is_left_when_the_interpreter_ends(packed: Path) -> None:
    program = (
        "import sys, threading, gristmill as gm\n"
        "pages = [gm.view(sys.argv[1]) for _ in range(3)]\n"
        "assert threading.active_count() == 1\n"
        "print(pages[0].url, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, packed], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(urllib.error.URLError):
        page(done.stdout.strip())


def test_what_cannot_be_shown_is_said(packed: Path, tmp_path: Path) -> None:
    for wrong in (7, None, b"packed", [packed], object()):
        with pytest.raises(TypeError, match=r"expected a path|cannot be shown|os\.fsdecode"):
            gm.view(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="token"):
        gm.view(packed, token="0123456789abcdef")
    with pytest.raises(TypeError, match="address"):
        gm.view(packed, adress="127.0.0.1:0")  # type: ignore[call-arg]
    with pytest.raises(gm.FormatError):
        gm.view(tmp_path)
    with pytest.raises(FileNotFoundError):
        gm.view(tmp_path / "none")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(gm.ConfigError, match=address):
            gm.view(packed, address=address)
    with pytest.raises(ConnectionError, match=f"no loader is heard at {address}"):
        gm.view(address)
