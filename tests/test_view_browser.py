"""The pages of `gristmill view` in headless Chromium: stepping, links, colours, narrow screens, no other machine."""

import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import Browser, browsing
from demo_files import write_magical
from viewers import Viewer, run, viewing

import gristmill as gm


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="module")
def chess(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    folder = tmp_path_factory.mktemp("chess")
    run("generate", "chess", folder / "games", "--games", 60, "--seed", 1, "--plies-max", 80)
    run("pack", folder / "games", folder / "packed")
    with viewing(folder / "packed") as viewer:
        viewer.folder = folder / "games"
        yield viewer


def kept(browser: Browser, name: str) -> None:
    """Keeps a picture of what is shown for people, where GRISTMILL_PICTURES names a folder; it is never blank."""
    picture = browser.picture()
    assert len(picture) > 10_000
    if folder := os.environ.get("GRISTMILL_PICTURES"):
        (Path(folder) / f"{name}.png").write_bytes(picture)


def frame(number: int) -> str:
    return f"document.querySelector('#frame').dataset.frame === '{number}'"


def test_a_game_is_stepped_through_by_keys_slider_and_curves(browser: Browser, chess: Viewer) -> None:
    browser.looks()
    browser.open(chess.url + "game/3?frame=5")
    browser.wait(frame(5))
    kept(browser, "chess")
    before = browser.evaluate("document.querySelector('.board').outerHTML")
    for key, number in [("ArrowRight", 6), ("ArrowRight", 7), ("ArrowLeft", 6), ("PageDown", 16), ("Home", 0)]:
        browser.press(key)
        browser.wait(frame(number))
    assert browser.evaluate("document.querySelector('.board').outerHTML") != before
    browser.press("ArrowRight")
    browser.wait(frame(1))
    browser.wait("location.search === '?frame=1'")
    browser.wait("document.querySelector('#says').textContent.startsWith('Frame 1 of 0 to')")
    last = int(browser.evaluate("document.querySelector('.game').dataset.frames")) - 1
    browser.press("End")
    browser.wait(frame(last))
    assert browser.evaluate("document.querySelector('.cursor').getAttribute('x1')") == "1000"
    assert browser.evaluate("document.querySelector('[data-slider]').value") == str(last)
    browser.click("[data-chart]", 0.001)
    browser.wait(frame(0))
    browser.click("[data-step=on]")
    browser.wait(frame(1))
    browser.evaluate("document.activeElement.blur()")
    browser.press(" ")
    browser.wait("Number(document.querySelector('#frame').dataset.frame) >= 3")
    browser.press(" ")
    browser.press("f")
    browser.wait("getComputedStyle(document.querySelector('.board')).transform.startsWith('matrix(-1')")
    browser.evaluate("scrollTo(0, 0)")
    kept(browser, "flipped")
    browser.press("f")
    browser.press("]")
    browser.wait("location.pathname.endsWith('/game/4')")
    browser.open(chess.url + "game/3?where=id+%3C+40&sort=id&way=down&frame=9")
    browser.press("ArrowRight")
    browser.wait("location.search === '?where=id+%3C+40&sort=id&way=down&frame=10'")
    browser.press("]")
    browser.wait("location.pathname.endsWith('/game/2') && location.search.includes('way=down')")


def test_conditions_sort_and_bars_lead_on(browser: Browser, chess: Viewer) -> None:
    browser.looks()
    browser.open(chess.url)
    kept(browser, "games")
    browser.evaluate("document.querySelector('.names').open = true")
    browser.click("[data-word]")
    browser.wait("document.querySelector('#where').value === 'id '")
    browser.evaluate("document.querySelector('#where').value = 'id < 3'")
    browser.click(".ask button")
    browser.wait("document.querySelectorAll('tbody tr').length === 3")
    browser.open(chess.url + "columns")
    kept(browser, "columns")
    browser.evaluate("document.querySelector('.bars a').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    browser.wait("location.search.startsWith('?where=') && document.querySelectorAll('tbody tr').length > 0")


def test_a_condition_is_reached_completed_and_brushed(browser: Browser, chess: Viewer) -> None:
    browser.looks()
    browser.open(chess.url)
    browser.press("/")
    browser.wait("document.activeElement.id === 'where'")
    shown = "[...document.querySelectorAll('#columns option')].map((one) => one.value).join(' | ')"
    browser.evaluate(
        "document.activeElement.value = 'id < 9 AND fra'; document.activeElement.dispatchEvent(new Event('input'))"
    )
    assert browser.evaluate(shown) == "id < 9 AND frames"
    browser.open(chess.url + "columns")
    before = browser.evaluate("document.querySelectorAll('.card').length")
    bars = "[...document.querySelectorAll('.bars')].at(-1)"
    assert before > 2
    place = browser.evaluate(
        f"(() => {{ {bars}.scrollIntoView({{block: 'center'}});"
        f" return [...{bars}.querySelectorAll('.room')].map((one) =>"
        " { const b = one.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }); })()"
    )
    browser.drag([place[0], place[len(place) // 2]])
    browser.wait("location.pathname.endsWith('/columns') && location.search.includes('AND')")
    browser.wait("document.querySelector('#where').value.includes('>=')")
    kept(browser, "brushed")


def test_duplicates_are_looked_for_and_lead_to_their_games(browser: Browser, tmp_path: Path) -> None:
    run("generate", "chess", tmp_path / "games", "--games", 6, "--seed", 1)
    shutil.copy(tmp_path / "games/training.2.gz", tmp_path / "games/training.9.gz")
    run("pack", tmp_path / "games", tmp_path / "packed")
    browser.looks()
    with viewing(tmp_path / "packed") as viewer:
        browser.open(viewer.url + "duplicates")
        browser.click("[name=look]")
        browser.wait("document.querySelectorAll('tbody.group tr').length === 2")
        kept(browser, "duplicates")
        browser.click("tbody.group tr:last-child a")
        browser.wait("location.pathname.endsWith('/game/6') && document.querySelector('#frame') !== null")
        browser.open("about:blank")


def test_axe_finds_no_fault(browser: Browser, chess: Viewer) -> None:
    source = axe()
    browser.looks()
    names = ["", "columns", "marks", "duplicates", "duplicates?look=yes", "left-out", "origin", "game/3?frame=4"]
    names += ["?where=nought", "nowhere"]
    with gm.DataLoader(gm.presets.lc0(chess.folder, batch_size=8, reservoir=8, seed=5)) as loader:
        address = loader.serve_metrics("127.0.0.1:0")
        loader.get_next()
        with viewing(address) as run:
            found = {}
            for scheme, width in itertools.product(("light", "dark"), (1280, 390)):
                browser.looks(scheme, width, 900)
                for url in [chess.url + name for name in names] + [run.url, run.url + "?level=warning"]:
                    browser.open(url)
                    browser.evaluate(source)
                    told = browser.evaluate("axe.run().then((found) => JSON.stringify(found.violations))")
                    for one in json.loads(told):
                        found[scheme, width, url, one["id"]] = [node["html"][:160] for node in one["nodes"]][:3]
            assert found == {}, json.dumps([[*key, found[key]] for key in found], indent=1)
    browser.looks()
    browser.complaints.clear()


def axe() -> str:
    """The text of axe-core; skips where it is not there."""
    path = Path(os.environ.get("AXE", Path(__file__).parents[1] / ".venv/node_modules/axe-core/axe.min.js"))
    if not path.exists():
        pytest.skip("skipped: no axe-core; `npm install --prefix .venv axe-core`, or set AXE to its axe.min.js")
    return path.read_text()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390), ("dark", 390)])
def test_pages_fit_dark_and_narrow_screens(browser: Browser, chess: Viewer, scheme: str, width: int) -> None:
    browser.looks(scheme, width, 900)
    for name in ("", "columns", "marks", "duplicates?look=yes", "left-out", "origin", "game/3?frame=4"):
        browser.open(chess.url + name)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, name
        light = browser.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").split(",")
        assert (int(light[0]) < 80) == (scheme == "dark"), (name, light)
    kept(browser, f"game-{scheme}-{width}")


def test_without_scripts_links_step(browser: Browser, chess: Viewer) -> None:
    browser.looks(scripts=False)
    try:
        browser.open(chess.url + "game/3?frame=4")
        assert browser.evaluate("document.querySelector('[data-slider]').hidden")
        browser.click("[data-step=on]")
        browser.wait(f"location.search === '?frame=5' && {frame(5)}")
    finally:
        browser.looks()


def test_pictures_are_shown(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "demos").mkdir()
    write_magical(tmp_path / "demos/a.pkl", [3, 1, 4, 1, 5, 9], side=32)
    run("pack", tmp_path / "demos", tmp_path / "packed")
    browser.looks()
    with viewing(tmp_path / "packed") as viewer:
        browser.open(viewer.url + "game/0")
        browser.press("ArrowRight")
        browser.wait(frame(1))
        browser.wait(
            "[...document.querySelectorAll('.seen img')].every((one) => one.complete && one.naturalWidth === 32)"
        )
        kept(browser, "pictures")


def test_a_run_renews_itself_and_leaves_what_people_do(browser: Browser, tmp_path: Path) -> None:
    run("generate", "chess", tmp_path / "games", "--games", 60, "--seed", 1, "--plies-max", 80)
    (tmp_path / "games/training.bad.gz").write_bytes(b"no game")
    browser.looks()
    with gm.DataLoader(gm.presets.lc0(tmp_path / "games", batch_size=64, reservoir=512, seed=5)) as loader:
        address = loader.serve_metrics("127.0.0.1:0")
        loader.get_next()
        with viewing(address) as viewer:
            browser.open(viewer.url)
            browser.wait("document.querySelector('[data-state=running]') !== null")
            names = "[...document.querySelectorAll('#run dt')]"
            up = f"{names}.find((one) => one.textContent === 'Up').nextSibling.textContent"
            before = browser.evaluate(up)
            browser.evaluate("document.querySelector('.levels a').focus()")
            for _ in range(3):
                [loader.get_next() for _ in range(40)]
                browser.wait(f"{up} !== {before!r}")
                before = browser.evaluate(up)
            assert browser.evaluate("document.activeElement.closest('.levels') !== null")
            browser.evaluate("scrollTo(0, 0)")
            kept(browser, "run")
            for scheme, width in (("dark", 1280), ("light", 390), ("dark", 390)):
                browser.looks(scheme, width, 900)
                browser.open(viewer.url)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                kept(browser, f"run-{scheme}-{width}")
            browser.looks()
            browser.open(viewer.url)
            browser.press("p")
            browser.wait("document.querySelector('[data-pause]').getAttribute('aria-pressed') === 'true'")
            browser.press("p")
            loader.stop()
            browser.wait("document.querySelector('#run').dataset.state !== 'running'")
            browser.wait("document.querySelector('#says').textContent.startsWith('The run is:')")
            assert viewer.end() == 0
            browser.wait("!document.querySelector('#gone').hidden")
            assert browser.evaluate("document.querySelectorAll('.stages tbody').length") >= 5
        browser.leave()
    # What it could not reach any more is no complaint of the page.
    browser.complaints.clear()


def test_a_run_without_scripts_loads_itself_again(browser: Browser, tmp_path: Path) -> None:
    run("generate", "chess", tmp_path / "games", "--games", 5, "--seed", 1, "--plies-max", 30)
    with gm.DataLoader(gm.presets.lc0(tmp_path / "games", batch_size=8, reservoir=8, seed=5)) as loader:
        address = loader.serve_metrics("127.0.0.1:0")
        loader.get_next()
        with viewing(address) as viewer:
            browser.looks(scripts=False)
            try:
                browser.open(viewer.url)
                loads = browser.asked.count(viewer.url)
                browser.evaluate("window.first = true")
                browser.wait("window.first === undefined")
                assert browser.asked.count(viewer.url) > loads
                browser.wait("document.querySelector('[data-keys]')?.hidden")
            finally:
                browser.leave()
                browser.looks()


def test_nothing_was_asked_elsewhere_and_nothing_refused(browser: Browser, chess: Viewer) -> None:
    browser.open(chess.url + "game/1")
    assert browser.asked
    assert all(url.startswith(("http://127.0.0.1:", "about:")) for url in browser.asked), browser.asked
    assert browser.complaints == []
    # A script within a page is refused by the policy.
    browser.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    assert browser.evaluate("window.ran === undefined")
