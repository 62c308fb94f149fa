"""The pictures of the guides, of real runs: `top`, `inspect` and `stats` on terminals, and the page of `stats --html`.

    pictures.py COMMAND OUT

COMMAND is the gristmill command, OUT the folder (docs/guide). The page is drawn by headless Chromium; where there is
none that picture stays as it is. Texts become SVG that loads nothing from elsewhere.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

#: Columns of the terminal.
WIDTH = 100


def svg(title: str, text: str) -> str:
    """A terminal with this text, which may have colours."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=False)
    drawn = console.export_svg(title=title, unique_id=title.split()[1])
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->", "", drawn, flags=re.DOTALL)


def said(command: Path, folder: Path, *words: object) -> str:
    """What a command prints in a folder, in colours."""
    line = [str(command), *map(str, words), "--color", "always"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True).stdout


def top(command: Path, folder: Path) -> str:
    """The status of a running feed."""
    words = [str(command), "feed", "games", "--seed", "1", "--pool", "200", "--metrics", "127.0.0.1:0"]
    feed = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert feed.stderr is not None
        address = None
        while address is None:
            line = feed.stderr.readline()
            if not line:
                sys.exit("pictures: the feed ended before it served its metrics")
            address = re.search(r"(127\.0\.0\.1:\d+)", line)
        time.sleep(4)  # so that rates are those of a run, and not of its start
        return said(command, folder, "top", address[1], "--once")
    finally:
        feed.terminate()
        feed.wait()


def page(command: Path, folder: Path, out: Path) -> None:
    """The page of `stats --html`, as a browser draws it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("skipped: no chromium; the picture of the page stays as it is")
        return
    html = folder / "stats.html"
    said(command, folder, "stats", "games", "--html", html)
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,760"]
    target = folder / "stats.png"
    subprocess.run([browser, *words, f"--screenshot={target}", html.as_uri()], capture_output=True, check=True)
    shutil.copy(target, out / "stats.png")


def main(command: Path, out: Path) -> None:
    """Writes all of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said(command, folder, "generate", "chess", "games", "--games", "300", "--seed", "1")
        inspected = said(command, folder, "inspect", "games/training.7.gz", "--frame", 30)
        (out / "top.svg").write_text(svg("gristmill top", top(command, folder)))
        (out / "inspect.svg").write_text(svg("gristmill inspect games/training.7.gz --frame 30", inspected))
        page(command, folder, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
