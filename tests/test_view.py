"""`gristmill view` through the real command: its pages and data, what hostile requests get, and how it ends."""

import json
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from bullet_boards import write_boards
from demo_files import write_dm_control, write_magical
from viewers import Viewer, binary, run, viewing
from web_servers import files_of, served

import gristmill as gm

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of thirty chess games, one of which was left out, with a mark."""
    folder = tmp_path_factory.mktemp("chess")
    run("generate", "chess", folder / "games", "--games", 30, "--seed", 1, "--plies-max", 60)
    (folder / "games/training.<i>.gz").write_bytes(b"no game")
    run("pack", folder / "games", folder / "packed")
    run("mark", folder / "packed", "fresh", "--rule", "rule50_count < 2")
    return folder / "packed"


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of three games of 2048."""
    folder = tmp_path_factory.mktemp("g2048")
    run("generate", "2048", folder / "logs", "--games", 3, "--seed", 1, "--moves-max", 40)
    run("pack", folder / "logs", folder / "steps")
    return folder / "steps"


def plain(viewer: Viewer, page: str) -> None:
    """A page has no script or style of its own, and names nothing of another place."""
    assert "style=" not in page
    assert "<style" not in page
    assert " onclick" not in page
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    named = re.findall(r'(?:href|src|action)="([^"]*)"', page)
    assert named
    assert all(to.startswith((viewer.root, "?", "#")) for to in named), named


def test_a_pack_of_chess_is_a_table_with_conditions(packed: Path) -> None:
    with viewing(packed) as viewer:
        page = viewer.page()
        plain(viewer, page)
        assert "training.1.gz" in page
        assert f'href="{viewer.root}game/0"' in page
        games = viewer.json("games.json?where=frames+%3E+20&sort=frames&way=down&most=3")
        lengths = [game["frames"] for game in games["games"]]
        assert len(lengths) == 3
        assert lengths == sorted(lengths, reverse=True)
        assert games["total"] <= 30
        db = sqlite3.connect(f"file:{packed / 'metadata.db'}?immutable=1", uri=True)
        assert games["total"] == db.execute("SELECT count(*) FROM games WHERE frames > 20").fetchone()[0]
        assert "no such column: elo" in viewer.page("?where=elo+%3E+1")
        status, headers, body = viewer.ask("games.json?where=elo")
        assert (status, headers["Content-Type"]) == (400, "application/json")
        assert "no such column: elo" in json.loads(body)["error"]
        spread = viewer.json("columns.json")["frames"]
        assert sum(bar["games"] for bar in spread["bars"]) == 30
        for bar in spread["bars"]:
            condition = bar["where"].replace(" ", "+").replace(">", "%3E").replace("<", "%3C").replace('"', "%22")
            assert viewer.json(f"games.json?where={condition}")["total"] == bar["games"], bar
        assert "fresh" in viewer.page("marks")
        assert "training.&lt;i&gt;.gz" in viewer.page("left-out")
        assert "<strong>pack</strong>" in viewer.page("origin")
        for tab in ("columns", "marks", "left-out", "origin"):
            plain(viewer, viewer.page(tab))


def test_duplicates_are_those_of_dedup(tmp_path: Path) -> None:
    run("generate", "chess", tmp_path / "games", "--games", 60, "--seed", 1, "--plies-max", 30)
    for copy in range(70, 130):
        shutil.copy(tmp_path / f"games/training.{copy - 69}.gz", tmp_path / f"games/training.{copy}.gz")
    shutil.copy(tmp_path / "games/training.3.gz", tmp_path / "games/training.<i>.gz")
    run("pack", tmp_path / "games", tmp_path / "packed")
    line = [binary(), "dedup", str(tmp_path / "packed"), "--report", "--json"]
    expected = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    assert len(expected["groups"]) == 60
    with viewing(tmp_path / "packed") as viewer:
        assert viewer.json("duplicates.json") == {"search": "unasked"}
        assert "tbody" not in viewer.page("duplicates")
        found = viewer.json("duplicates.json?look=yes&first=1&most=1000")
        while found["search"] == "reads":
            assert 0 <= found["done"] <= found["of"] == 121
            found = viewer.json("duplicates.json?look=yes&first=1&most=1000")
        assert found["groups"] == expected["groups"][1:]
        assert found["total"] == 60
        for count in ("games", "different", "exact", "same", "mirrored", "frames"):
            assert found[count] == expected[count]
        pages = [viewer.page("duplicates"), viewer.page("duplicates?look=yes&page=1")]
        assert [page.count('<tbody class="group">') for page in pages] == [50, 10]
        for page in pages:
            plain(viewer, page)
        assert "training.&lt;i&gt;.gz" in "".join(pages)
        third = next(group for group in expected["groups"] if len(group["games"]) == 3)
        for game in third["games"]:
            assert f'<a href="{viewer.root}game/{game["id"]}">{game["id"]}</a>' in "".join(pages)
        viewer.page("duplicates?look=yes&page=99999999999")
        assert viewer.end() == 0


def test_a_search_for_duplicates_that_fails_says_why(steps: Path, tmp_path: Path) -> None:
    with viewing(steps) as viewer:
        page = viewer.page("duplicates?look=yes")
        while "data-again" in page:
            page = viewer.page("duplicates?look=yes")
        assert "Every game of this pack is there once." in page
    # Who games of chess are stands in the database; boards of bulletformat are read for it.
    gm.pack(write_boards(tmp_path / "boards", 3000), tmp_path / "torn")
    (chunks,) = (tmp_path / "torn").glob("*.chunks")
    data = bytearray(chunks.read_bytes())
    data[len(data) // 4 : len(data) // 4 + 8] = bytes(8)
    chunks.write_bytes(data)
    with viewing(tmp_path / "torn") as viewer:
        found = viewer.json("duplicates.json?look=yes")
        while found["search"] == "reads":
            found = viewer.json("duplicates.json")
        assert found["search"] == "failed", found
        assert str(chunks) in found["why"]
        assert "Look for duplicates" in viewer.page("duplicates")


def test_a_game_of_chess_has_board_arrows_and_curves(packed: Path) -> None:
    with viewing(packed) as viewer:
        page = viewer.page("game/3?frame=5")
        plain(viewer, page)
        assert 'data-frame="5"' in page
        assert page.count('<use class="') > 20
        assert "<polygon" in page
        assert 'aria-live="polite"' in page
        assert "White: king" in page
        assert 'href="?frame=6"' in page
        data = viewer.json("game/3/frame/5.json")
        assert data["frame"] == 5
        assert data["fen"].split()[0] in page
        assert data["record"]["version"] == 6
        curves = viewer.json("game/3.json")
        assert curves["frames"] == data["frames"] == len(curves["at"])
        titles = [chart["title"] for chart in curves["curves"]]
        assert titles == ["Value for White", "Draw probability", "Plies left"]
        for _, series in curves["curves"][0]["series"]:
            assert len(series) == curves["frames"]
            assert all(-1 <= q <= 1 for q in series if q is not None)
        part = viewer.page("game/3/frame/7")
        assert part.startswith('<section id="frame"')
        assert 'data-frame="7"' in part
        assert "<html" not in part
        records = [viewer.json(f"game/3/frame/{i}.json")["record"] for i in curves["at"]]
        marked = sum(record["rule50_count"] < 2 for record in records)
        assert f'aria-label="fresh: {marked} of {curves["frames"]} frames"' in page
        for wrong in ("game/99", "game/-1", "game/x", "game/3/frame/9999", "game/3/frame/x"):
            viewer.page(wrong, 404)


def test_moves_that_gave_much_away_are_listed(packed: Path, steps: Path) -> None:
    found = 0
    with viewing(packed) as viewer:
        for game in range(6):
            curves = viewer.json(f"game/{game}.json")
            expected = []
            for frame in range(curves["frames"]):
                seen = viewer.json(f"game/{game}/frame/{frame}.json")
                q = {row["name"]: row["q"] for row in seen["values"]}
                values = q["played"], q["best"]
                if None not in values and seen["played"] != seen["best"] and values[1] - values[0] >= 0.2:
                    expected.append((frame, seen["played"], seen["best"]))
            assert [(one["frame"], one["made"], one["best"]) for one in curves["blunders"]] == expected
            page = viewer.page(f"game/{game}")
            assert page.count('<line class="fault"') == len(expected)
            assert ("at least 0.2 less" in page) == bool(expected)
            for frame, made, best in expected:
                assert f'<a href="?frame={frame}">Frame {frame}</a> {made} instead of {best}' in page
            found += len(expected)
    assert found
    with viewing(steps) as viewer:
        curves = viewer.json("game/0.json")
        lost = []
        for frame in range(curves["frames"]):
            step = viewer.json(f"game/0/frame/{frame}.json")
            evs = {one["move"]: one["ev"] for one in step["branches"] if one["ev"] is not None}
            best = max(evs.values())
            if best - evs.get(step["move"], best) >= 0.01 * abs(best) and evs[step["move"]] != best:
                lost.append(frame)
        assert [one["frame"] for one in curves["blunders"]] == lost


def test_tables_say_who_wins(syzygy: Path, tmp_path: Path) -> None:
    tags = '[Event "?"]\n[SetUp "1"]\n[FEN "8/8/8/4k3/8/8/4K3/7R w - - 0 1"]\n[Result "1-0"]\n'
    (tmp_path / "end.pgn").write_text(f"{tags}\n1. Rh4 Kd5 2. Ke3 1-0\n")
    with viewing(tmp_path / "end.pgn", "--syzygy", syzygy) as viewer:
        page = viewer.page("game/0")
        assert "<span>Tablebase</span> the side to move wins;" in page
        assert "Tablebase: the side to move wins" in page
        assert "<span>Tablebase</span> the side to move loses" in viewer.page("game/0?frame=1")
    with viewing(tmp_path / "end.pgn") as viewer:
        assert "Tablebase" not in viewer.page("game/0")
    line = [binary(), "view", str(tmp_path / "end.pgn"), "--syzygy", str(tmp_path), "--no-browser"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done


def test_a_state_says_when_games_are_fed(packed: Path, steps: Path, tmp_path: Path) -> None:
    with gm.DataLoader(gm.open(packed), batch_size=16, seed=3) as loader:
        for _ in range(5):
            loader.get_next()
        loader.save(tmp_path / "state")
    with viewing(packed, "--state", tmp_path / "state") as viewer:
        times = viewer.json("game/3/when.json")
        line = [binary(), "when", "3", "--pack", str(packed), "--state", str(tmp_path / "state"), "--json"]
        assert times == json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        page = viewer.page("game/3")
        plain(viewer, page)
        assert "The next batch is 5." in page
        batches = {time["batch"] for time in times["times"]}
        assert batches
        assert all(f'<th scope="row">{batch}</th>' in page for batch in batches if batch < 1000)
        assert ("was fed" in page) == any(time["fed"] == "was" for time in times["times"])
        assert "will be fed" in page
    with viewing(steps, "--state", tmp_path / "state") as viewer:
        # A state of another pack is a fault of that part of the page alone.
        assert '<p class="wrong">' in viewer.page("game/1")
    with viewing(packed) as viewer:
        assert "In the run" not in viewer.page("game/3")
        assert "--state FILE" in viewer.page("game/3/when.json", 404)


def test_a_range_of_a_column_narrows_all_of_them(packed: Path) -> None:
    with viewing(packed) as viewer:
        assert '<datalist id="columns"><option value="id">' in viewer.page()
        page = viewer.page("columns")
        assert 'aria-label="frames from"' in page
        status, headers, _ = viewer.ask("columns?of=frames&from=10&to=30&where=id+%3C+20")
        assert status == 303
        there = viewer.ask(headers["Location"], rooted=False)[2].decode()
        kept = viewer.json("games.json?where=id+%3C+20+AND+frames+BETWEEN+10+AND+30")["total"]
        assert (
            sum(
                one["games"]
                for one in viewer.json("columns" + ".json?" + headers["Location"].partition("?")[2])["frames"]["bars"]
            )
            == kept
        )
        assert "(id &lt; 20) AND &quot;frames&quot; &gt;= 10 AND &quot;frames&quot; &lt;= 30" in there
        for wrong in ("of=none&from=1&to=2", "of=frames&from=x&to=2", "of=frames&from=1&to=inf", "of=frames"):
            viewer.page(f"columns?{wrong}", 400)


def test_games_keep_the_condition_that_led_to_them(packed: Path) -> None:
    with viewing(packed) as viewer:
        chosen = "where=frames+%3E+20&sort=frames&way=down"
        ids = [game["id"] for game in viewer.json(f"games.json?{chosen}")["games"]]
        page = viewer.page(f"?{chosen}")
        link = f"{viewer.root}game/{ids[1]}?where=frames%20%3E%2020&amp;sort=frames&amp;way=down"
        assert f'href="{link}"' in page
        page = viewer.page(f"game/{ids[1]}?{chosen}&frame=4")
        near = re.findall(r'data-game-(prev|next) rel="\w+" href="[^"]*/game/(\d+)\?where', page)
        assert near == [("prev", str(ids[0])), ("next", str(ids[2]))]
        assert 'href="?frame=5&amp;where=frames%20%3E%2020&amp;sort=frames&amp;way=down"' in page
        assert "<code>frames &gt; 20</code>" in page
        # A condition that is none keeps nobody from the game.
        assert 'data-frame="4"' in viewer.page("game/3?where=nought+%3D+1&frame=4")


def test_data_elsewhere_is_shown(packed: Path, tmp_path: Path) -> None:
    with served(files_of(packed.parent)) as url, viewing(f"{url}/packed", "--cache", tmp_path / "cache") as viewer:
        assert viewer.json("games.json")["total"] == 30
        assert "<polygon" in viewer.page("game/0?frame=3")
        assert "fresh" in viewer.page("marks")
        assert "training.&lt;i&gt;.gz" in viewer.page("left-out")
    (tmp_path / "web").mkdir()
    file = packed.parent / "games/training.5.gz"
    (tmp_path / "web" / file.name).write_bytes(file.read_bytes())
    with (
        served(files_of(tmp_path / "web")) as url,
        viewing(f"{url}/{file.name}", "--cache", tmp_path / "cache") as viewer,
    ):
        assert "<polygon" in viewer.page("game/0?frame=3")


def test_a_game_of_2048_has_tiles_and_legal_moves(steps: Path) -> None:
    with viewing(steps) as viewer:
        page = viewer.page("game/1?frame=30")
        plain(viewer, page)
        assert page.count('<rect class="tile') == 16
        assert "row 1:" in page
        assert 'class="way made"' in page
        step = viewer.json("game/1/frame/30.json")
        assert f"Moved {step['move']}. Step 30." in page
        legal = sum(branch["ev"] is not None for branch in step["branches"])
        assert page.count("not legal") == 4 - legal
        curves = {chart["title"]: dict(chart["series"]) for chart in viewer.json("game/1.json")["curves"]}
        assert curves["Legal moves"]["legal moves"][30] == legal
        assert curves["Value of the board"]["value"][30] == step["board_eval"]


def test_demonstrations_have_pictures_and_curves(tmp_path: Path) -> None:
    folder = tmp_path / "demos"
    folder.mkdir()
    write_magical(folder / "a.pkl", [3, 1, 4, 1, 5, 9, 2, 6], side=24)
    run("pack", folder, tmp_path / "packed")
    with viewing(tmp_path / "packed") as viewer:
        page = viewer.page("game/0?frame=3")
        plain(viewer, page)
        assert "<h1>Trajectory 0</h1>" in page
        pictures = re.findall(r'src="([^"]*picture/3/[^"]*)"', page)
        assert len(pictures) == 2
        assert all("next_" not in name for name in pictures)
        status, headers, body = viewer.ask(pictures[0], rooted=False)
        assert (status, headers["Content-Type"], body[:8]) == (200, "image/png", b"\x89PNG\r\n\x1a\n")
        curves = {chart["title"]: dict(chart["series"]) for chart in viewer.json("game/0.json")["curves"]}
        assert curves["acts"]["0"] == [3, 1, 4, 1, 5, 9, 2, 6]
        assert {"rews", "dones"} <= set(curves)
        for wrong in ("game/0/picture/3/acts.png", "game/0/picture/3/none.png", "game/0/picture/99/obs.allo.png"):
            viewer.page(wrong, 404)


def test_files_and_folders_are_shown_too(packed: Path, tmp_path: Path) -> None:
    with viewing(packed.parent / "games") as viewer:
        page = viewer.page()
        plain(viewer, page)
        assert "training.&lt;i&gt;.gz" in page
        assert f'href="{viewer.root}file/0/"' in page
        assert "<polygon" in viewer.page("file/2/game/0?frame=4")
        assert viewer.json("file/2/game/0/frame/4.json")["fen"]
    with viewing(packed.parent) as viewer:
        assert f'<a href="{viewer.root}file/0/">packed</a> <small>pack</small>' in viewer.page()
        assert viewer.json("file/0/games.json")["total"] == 30
    write_dm_control(tmp_path / "spin.pkl", [5, 7])
    with viewing(tmp_path / "spin.pkl") as viewer:
        assert "acts" in viewer.page("game/1")
        assert viewer.json("game/1.json")["frames"] == 7
        assert viewer.ask("game/1/picture/2/obs.png")[0] == 200


def test_texts_of_data_are_never_run(tmp_path: Path) -> None:
    tags = f'[Event "{SCRIPT}"]\n[White "<img src=x onerror=alert(1)>"]\n[Result "1-0"]\n'
    pgn = f"{tags}\n1. e4 e5 2. Qh5 Ke7 3. Qxe5# 1-0\n"
    (tmp_path / "games").mkdir()
    (tmp_path / "games/one.pgn").write_text(pgn)
    run("pack", tmp_path / "games", tmp_path / "packed")
    with viewing(tmp_path / "packed") as viewer:
        asked = "%3Cscript%3Ealert(1)%3C/script%3E"
        targets = ["", "columns", "game/0", "game/0?frame=1", f"?where={asked}", f"?sort={asked}", f"?page={asked}"]
        for target in [*targets, f"columns?where={asked}&column={asked}", "left-out", "origin", "marks"]:
            page = viewer.page(target)
            assert "<script>" not in page, page
            assert "<img src=x" not in page, page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in viewer.page()
        assert "<script>" not in viewer.page(asked, 404)
        assert "<script>" not in viewer.page(f"game/{asked}", 404)


def test_hostile_requests_get_nothing(packed: Path) -> None:
    with viewing(packed) as viewer:
        for target in (
            "/../metadata.db",
            "/%2e%2e/metadata.db",
            "/metadata.db",
            "/manifest.json",
            "/etc/passwd",
            "//etc/passwd",
        ):
            assert viewer.ask(target, rooted=False)[0] == 404, target
        assert viewer.ask("", headers={"Host": "rebound.example"})[0] == 403
        assert viewer.ask("games.json", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "empty"})[0] == 403
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert viewer.ask("", method)[0] == 405, method
        assert viewer.ask("", "HEAD")[2] == b""
        assert viewer.ask("?where=" + "x" * 9000)[0] == 431
        for target in ("", "assets/view.js", "nowhere", "games.json"):
            headers = viewer.ask(target)[1]
            assert headers["Content-Security-Policy"].startswith("default-src 'self';"), target
            assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
            assert headers["Referrer-Policy"] == "no-referrer"
            assert "Access-Control-Allow-Origin" not in headers
        for sql in (
            "1;DROP TABLE games",
            "id IN (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n)",
        ):
            asked = sql.replace(" ", "+").replace(";", "%3B")
            assert viewer.ask(f"games.json?where={asked}")[0] == 400, sql
        assert viewer.json("games.json")["total"] == 30


def test_slow_and_silent_clients_hold_up_nobody(packed: Path) -> None:
    with viewing(packed) as viewer:
        silent = [socket.create_connection((viewer.host, viewer.port)) for _ in range(80)]
        for i, connection in enumerate(silent):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "[: 4 + i % 30])
        start = time.monotonic()
        assert "training.1.gz" in viewer.page()
        assert time.monotonic() - start < 10
        for connection in silent:
            connection.close()


def test_beyond_this_machine_the_address_has_a_token(packed: Path) -> None:
    with viewing(packed, "--addr", "0.0.0.0:0") as viewer:
        assert viewer.open
        assert re.fullmatch(r"/[0-9a-f]{32}/", viewer.root)
        page = viewer.page()
        plain(viewer, page)
        assert viewer.ask("", headers={"Host": "trainer.example"})[0] == 200
        for target in ("/", "/games.json", "/assets/view.js", "/" + "0" * 32 + "/", viewer.root[:-2] + "/"):
            status, _, body = viewer.ask(target, rooted=False)
            assert (status, b"training" in body) == (403, False), target


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_well(packed: Path, how: signal.Signals) -> None:
    before = sorted(path.name for path in packed.iterdir())
    with viewing(packed) as viewer:
        viewer.page()
        waiting = socket.create_connection((viewer.host, viewer.port))
        assert viewer.end(how) == 0
        waiting.close()
        assert viewer.child.stderr is not None
        assert viewer.child.stderr.read() == ""
    assert sorted(path.name for path in packed.iterdir()) == before


def test_what_cannot_be_shown_is_said(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no data")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "array.npy", np.zeros(3))
    with viewing(packed) as viewer:
        taken = f"127.0.0.1:{viewer.port}"
        cases: list[tuple[list[object], int, str]] = [
            ([tmp_path / "none"], 1, "none"),
            ([tmp_path / "notes.txt"], 1, "notes.txt"),
            ([tmp_path / "empty"], 1, "without files"),
            ([packed, "--addr", taken], 2, taken),
            ([packed, "--addr", "nowhere"], 2, "nowhere"),
            ([packed, "--addr", "a b"], 2, "HOST:PORT"),
        ]
        for words, code, said in cases:
            line = [binary(), "view", *map(str, words), "--no-browser"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False)
            assert (done.returncode, done.stdout, said in done.stderr) == (code, "", True), done
