"""Pages on how to add something show real changes: their files exist, and the names in the lines that they add."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "adding").glob("*.md"))


def test_there_is_a_page_for_each() -> None:
    assert [page.stem for page in PAGES] == ["command", "encoder", "format", "stage"]
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"(docs/adding/{page.name})" in contributing for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_and_names_of_a_page_are_there(page: Path) -> None:
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    file = None
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = ROOT / line.removeprefix("+++ b/")
            assert file.is_file(), line
        elif line.startswith("+") and file is not None:
            # Later changes may add to a line; the names in it stay.
            names = re.findall(r"[A-Za-z_]\w{4,}", line.split("//")[0].split("#")[0])
            there = file.read_text()
            assert [name for name in names if name not in there] == [], line
