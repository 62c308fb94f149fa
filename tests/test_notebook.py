"""Sources, selections, games and batches in a notebook: drawn whole, without a server, and with nothing that runs."""

import re
from pathlib import Path

import pytest
from demo_files import write_magical

import gristmill as gm

CELLS = """
import gristmill as gm
pack = gm.open(FOLDER + "/packed")
---
pack
---
pack.where("frames > 5")
---
gm.open(FOLDER + "/games/training.3.gz")
---
next(iter(gm.DataLoader(pack, batch_size=4, seed=1)))
---
gm.open(FOLDER + "/rows")
---
gm.open(FOLDER + "/demos.pkl")
---
gm.open(FOLDER + "/trajectories")
---
pages = gm.view(pack)
pages
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebook")
    gm.generate("chess", folder / "games", games=8, seed=1, plies_max=30)
    gm.pack(folder / "games", folder / "packed")
    gm.generate("2048", folder / "logs", games=2, seed=1, moves_max=30)
    gm.pack(folder / "logs", folder / "rows")
    (folder / "demos").mkdir()
    write_magical(folder / "demos.pkl", [3, 1, 4, 1, 5], side=24)
    write_magical(folder / "demos/a.pkl", [3, 1, 4, 1, 5], side=24)
    gm.pack(folder / "demos", folder / "trajectories")
    return folder


def still(html: str) -> None:
    """A text runs nothing and asks nothing of any place."""
    assert "<script" not in html
    assert not re.search(r"<[^>]*\son\w+=", html)
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    assert html.count("<div") == html.count("</div>")


def test_everything_is_drawn_without_a_server(folder: Path) -> None:
    pack = gm.open(folder / "packed")
    for what in (pack, pack.where("frames > 5"), gm.open(folder / "games/training.3.gz")):
        html = what._repr_html_()
        still(html)
        assert '<svg class="board"' in html
        assert 'class="line s0"' in html
        assert "Game" in html
    batch = next(iter(gm.DataLoader(pack, batch_size=4, seed=1)))
    html = batch._repr_html_()
    still(html)
    assert html.count("<use class=") > 2
    assert "<polygon" in html
    html = gm.open(folder / "rows")._repr_html_()
    still(html)
    assert html.count('<rect class="tile t') == 16
    for name in ("demos.pkl", "trajectories"):
        html = gm.open(folder / name)._repr_html_()
        still(html)
        assert 'src="data:image/png;base64,iVBOR' in html, name


def test_the_board_of_a_batch_is_that_of_its_game(folder: Path) -> None:
    pack = gm.open(folder / "packed")
    made = pack.encode([0])
    batch = gm.Batch(0, 1, made)
    html = batch._repr_html_()
    # The first position of a game, White to move: all men stand where they begin.
    assert html.count("<use class=") == 32
    assert '<g transform="translate(4 7)"><use class="white" href="#piece-k"' in html
    assert '<g transform="translate(3 0)"><use class="black" href="#piece-q"' in html


def test_names_of_data_are_escaped(folder: Path, tmp_path: Path) -> None:
    odd = tmp_path / "<img src=x>"
    odd.mkdir()
    (odd / "training.<b>.gz").write_bytes((folder / "games/training.3.gz").read_bytes())
    gm.pack(odd, tmp_path / "packed")
    for what in (gm.open(tmp_path / "packed"), gm.open(odd / "training.<b>.gz")):
        html = what._repr_html_()
        assert "<b>" not in html
        assert "<img src=x" not in html
        assert '<svg class="board"' in html


def test_what_cannot_be_drawn_is_a_table(folder: Path, tmp_path: Path) -> None:
    pack = gm.open(folder / "packed")
    html = pack.where("id < 0")._repr_html_()
    assert "gristmill-card" not in html
    assert "best_q" in html
    (tmp_path / "one.gz").write_bytes((folder / "games/training.3.gz").read_bytes())
    source = gm.open(tmp_path / "one.gz")
    (tmp_path / "one.gz").unlink()
    assert "gristmill-card" not in source._repr_html_()


def test_a_notebook_shows_them(folder: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="skipped: needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="skipped: needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    cells = CELLS.replace("FOLDER", repr(str(folder))).split("---\n")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output.data["text/html"] for cell in notebook.cells for output in cell.outputs]
    assert len(shown) == len(cells) - 1
    for html in shown[:-1]:
        still(html)
        assert "gristmill-card" in html
    assert "http://127.0.0.1:" in shown[-1]
