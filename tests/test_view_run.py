"""The page of a run: `gristmill view ADDR` of loaders that run, stop and come back, and of what is no loader."""

import contextlib
import dataclasses
import html
import http.server
import json
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from viewers import Viewer, binary, run, viewing

import gristmill as gm


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty games, and a file whose name commands terminals and browsers."""
    folder = tmp_path_factory.mktemp("run") / "games"
    run("generate", "chess", folder, "--games", 40, "--seed", 1, "--plies-max", 60)
    (folder / "training.\x1b[31m<b>.gz").write_bytes(b"no game")
    return folder


@contextlib.contextmanager
def loading(games: Path, address: str = "127.0.0.1:0", token: str | None = None) -> Iterator[tuple[gm.DataLoader, str]]:
    """A loader of the games that gave a batch, and the address of its metrics."""
    loader = gm.DataLoader(gm.presets.lc0(games, batch_size=16, reservoir=64, seed=5))
    with loader:
        bound = loader.serve_metrics(address, token=token)
        loader.get_next()
        yield loader, bound


class Other(http.server.BaseHTTPRequestHandler):
    """What answers in place of a loader, with the server's one answer."""

    #: Requests so far.
    asked = 0

    def do_GET(self) -> None:
        Other.asked += 1
        code, body = self.server.says  # type: ignore[attr-defined]
        self.send_response(code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def other(code: int, body: bytes) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a server that always gives one answer, and what ends it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    Other.asked = 0
    server.says = code, body  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    try:
        yield f"127.0.0.1:{server.server_port}", end
    finally:
        end()


def eventually(true: Callable[[], bool]) -> None:
    """Waits until something is true."""
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def known(viewer: Viewer) -> Any:
    return viewer.json("run.json")


def test_a_run_is_a_page_and_data(games: Path) -> None:
    with loading(games) as (loader, address), viewing(address) as viewer:
        assert not viewer.open
        eventually(lambda: known(viewer)["stages"]["tensors"]["per_second"] is not None)
        page = viewer.page()
        assert "style=" not in page
        assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page
        assert 'data-state="running"' in page
        order = [page.index(f'<th scope="row">{name} ') for name in ("load", "pool", "unpack", "sample", "tensors")]
        assert order == sorted(order), "from files to the trainer"
        for word in (
            "Where the time went",
            "Who waits now",
            "Stall since the start",
            "shuffling_chunk_pool",
            "reservoir",
        ):
            assert word in page, word
        # The name of a bad file is shown, and obeyed by nobody.
        eventually(lambda: "training.\ufffd[31m&lt;b&gt;.gz" in viewer.page())
        page = viewer.page()
        assert "\x1b" not in page
        assert "<b>" not in page
        warned = re.findall('<li class="(\\w+)">', viewer.page("?level=warning"))
        assert warned
        assert "info" not in warned
        assert viewer.page("run").startswith('<section id="run"')
        data = known(viewer)
        assert (data["answers"], data["address"], data["status"]["seed"]) == (True, address, 5)
        assert data["status"]["events"][0]["kind"] == "started"
        before = data["status"]["uptime_seconds"]
        eventually(lambda: known(viewer)["status"]["uptime_seconds"] > before)
        viewer.page("nowhere", 404)
        assert viewer.ask("", headers={"Host": "rebound.example"})[0] == 403
        loader.get_next()


def test_outputs_are_chosen_by_links(games: Path) -> None:
    line = [binary(), "feed", str(games), "--split", "train:3,test:1", "--metrics", "127.0.0.1:0", "--batch-size", "8"]
    with subprocess.Popen(
        [*line, "--reservoir", "32", "--seed", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        url = child.stderr.readline().split()[-1]
        try:
            # The address as it was printed: http://HOST:PORT/metrics.
            with viewing(url) as viewer:
                page = viewer.page()
                assert 'href="/?output=test"' in page
                assert "tensors_train" in page
                page = viewer.page("?output=test&level=error")
                assert "tensors_test" in page
                assert "tensors_train" not in page
                assert 'href="/?output=train&amp;level=error"' in page
        finally:
            child.kill()


def test_a_loader_that_has_gone_keeps_its_last_numbers(games: Path) -> None:
    with loading(games) as (loader, address), viewing(address) as viewer:
        stages = [stage["name"] for stage in known(viewer)["status"]["stages"]]
        loader.stop()
        eventually(lambda: not known(viewer)["answers"])
        page = viewer.page()
        assert "These are its last numbers" in page
        assert "running" not in page
        assert [stage["name"] for stage in known(viewer)["status"]["stages"]] == stages
        # Another loader at the same address is another run.
        with loading(games, address):
            eventually(lambda: known(viewer)["answers"])
            page = viewer.page()
            assert "Another loader answers here now" in page
            assert 'data-state="running"' in page
        assert viewer.end() == 0


def test_what_a_loader_said_last_is_kept_and_what_is_new_has_a_place(games: Path) -> None:
    with loading(games) as (_, address), urllib.request.urlopen(f"http://{address}/status") as answer:
        document = json.load(answer)
    document |= {"state": "stopped", "weather": {"rows": 4711, "seed_of": "<i>"}, "events": []}
    with other(200, json.dumps(document).encode()) as (address, end), viewing(address) as viewer:
        page = viewer.page()
        assert "The loader was stopped. These are its last numbers" in page
        assert '<h2 class="named">weather</h2>' in page
        assert "4\u2009711" in page
        assert "&lt;i&gt;" in page
        end()
        eventually(lambda: not known(viewer)["answers"])
        assert "The loader was stopped, and has gone" in viewer.page()


@pytest.mark.parametrize("of", ["stream", "rows"])
def test_a_ledger_and_a_certificate_are_shown(games: Path, tmp_path: Path, of: str) -> None:
    path = tmp_path / "<ledger>"
    if of == "stream":
        stream = gm.presets.lc0(games, batch_size=16, reservoir=64, seed=5)
        made_before, loader = 0, gm.DataLoader(dataclasses.replace(stream, ledger=str(path)))
    else:
        gm.pack(games, tmp_path / "packed")
        rows = gm.open(tmp_path / "packed")
        made_before, loader = 1, gm.DataLoader(rows, batch_size=16, seed=5, ledger=path, require="none")
    with loader:
        address = loader.serve_metrics("127.0.0.1:0")
        for _ in range(3):
            loader.get_next()
        with viewing(address) as viewer:
            ledger = {"path": str(path), "batches": 3}
            eventually(lambda: known(viewer)["status"]["ledger"] == ledger)
            assert f"3 batches noted in <code>{tmp_path}/&lt;ledger&gt;</code>" in viewer.page()
            # That of rows was made before the start, for `require`; a newer one takes its place.
            assert len(known(viewer)["status"]["certificates"]) == made_before
            made = loader.certificate()
            expected = [{"output": "", "level": made.level, "says": made.says}]
            eventually(lambda: known(viewer)["status"]["certificates"] == expected)
            assert html.escape(made.says) in viewer.page()


def test_without_a_ledger_and_a_certificate_none_is_shown(games: Path) -> None:
    with loading(games) as (_, address), viewing(address) as viewer:
        assert "ledger" not in known(viewer)["status"]
        assert "<h2>Ledger</h2>" not in viewer.page()
        assert "Certificate of" not in viewer.page()


def test_the_certificate_of_feed_is_shown(games: Path) -> None:
    line = [binary(), "feed", str(games), "--require", "none", "--metrics", "127.0.0.1:0", "--batch-size", "8"]
    with subprocess.Popen(
        [*line, "--reservoir", "32", "--seed", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        try:
            with viewing(child.stderr.readline().split()[-1]) as viewer:
                (made,) = known(viewer)["status"]["certificates"]
                assert made["says"].startswith(made["level"] + ": ")
        finally:
            child.kill()


def test_a_ledger_that_cannot_be_written_is_a_fault(games: Path) -> None:
    with loading(games) as (_, address), urllib.request.urlopen(f"http://{address}/status") as answer:
        document = json.load(answer)
    document |= {
        "ledger": {"path": "run.ledger", "batches": 7, "fault": "no <space>"},
        "certificates": [{"output": "<o>", "level": "weak", "says": "weak: <why>"}],
    }
    with other(200, json.dumps(document).encode()) as (address, _), viewing(address) as viewer:
        page = viewer.page()
        assert '<p class="wrong">It cannot be written: no &lt;space&gt;</p>' in page
        assert "of &lt;o&gt;" in page
        assert '<p class="wrong">weak: &lt;why&gt;</p>' in page


def test_an_end_is_no_fault(games: Path) -> None:
    config = gm.presets.lc0(games, batch_size=16, reservoir=64, seed=5, epochs=1)
    with gm.DataLoader(config) as loader:
        address = loader.serve_metrics("127.0.0.1:0")
        for _ in loader:
            pass
        with viewing(address) as viewer:
            page = viewer.page()
            assert 'data-state="ended"' in page
            assert "Every output has ended" in page
            assert 'class="wrong" role="alert">The' not in page


def test_a_loader_with_a_token_is_shown_to_those_who_have_one(games: Path, tmp_path: Path) -> None:
    token = "0123456789abcdef" * 2
    (tmp_path / "token").write_text(token + "\n")
    (tmp_path / "wrong").write_text("f" * 32)
    with loading(games, token=token) as (_, address):
        assert "wants a token" in refused(address)
        assert "not the loader's" in refused(address, "--token-file", tmp_path / "wrong")
        with viewing(address, "--token-file", tmp_path / "token") as viewer:
            assert re.fullmatch(r"/[0-9a-f]{32}/", viewer.root)
            assert "tensors" in viewer.page()
            assert viewer.ask("/", rooted=False)[0] == 403
            assert token not in viewer.page() + json.dumps(known(viewer))


def refused(address: str, *words: object) -> str:
    """What `view` says of an address that it does not show."""
    line = [binary(), "view", address, "--addr", "127.0.0.1:0", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done
    return done.stderr


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (404, b"nothing", "no gristmill loader (HTTP 404)"),
        (200, b"<html>", "no gristmill loader"),
        (200, b"{}", "no gristmill loader (not a status document)"),
        (200, b'{"gristmill_status": 99}', "version 99"),
        (200, b'{"gristmill_status": 1, "stages": 7}', "cannot be read"),
        (200, b"[" * 100_000, "no gristmill loader"),
    ],
)
def test_what_is_no_loader_is_said_to_be_none(code: int, body: bytes, said: str) -> None:
    with other(code, body) as (address, _):
        assert said in refused(address)


def test_readers_of_the_pages_never_reach_the_loader(games: Path) -> None:
    with loading(games) as (_, address), urllib.request.urlopen(f"http://{address}/status") as answer:
        document = answer.read()
    with other(200, document) as (address, _), viewing(address) as viewer:
        start = time.monotonic()
        crowd = [socket.create_connection((viewer.host, viewer.port)) for _ in range(60)]
        endless = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 40
        for i, connection in enumerate(crowd):
            # Slow, silent, garbage, and heads without an end.
            with contextlib.suppress(OSError):
                connection.sendall([b"GET /", b"", b"\x00\xff\x1b" * 2000, endless * 30][i % 4])
        for _ in range(50):
            assert 'id="run"' in viewer.page("run")
        assert viewer.ask("?" + "x" * 9000)[0] == 431
        for connection in crowd:
            connection.close()
        assert 'id="run"' in viewer.page("run")
        asked, seconds = Other.asked, time.monotonic() - start
        assert asked <= seconds + 3, "the listener alone asks, once a second, though nothing holds its answers back"


def test_where_nothing_answers_it_says_how_to_make_one(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address in (str(port), f"127.0.0.1:{port}", f"http://127.0.0.1:{port}"):
        text = refused(address)
        assert f"no loader is heard at 127.0.0.1:{port}" in text
        assert "serve_metrics" in text
    # A folder that is called like a port is data.
    run("generate", "chess", tmp_path / "9100", "--games", 2, "--seed", 1)
    line = [binary(), "view", "9100", "--json", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["path"] == "9100"
        child.kill()
