"""Prints what pip is to install for some parts of pyproject.toml: `build`, or names of extras."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
lists = {**project["project"]["optional-dependencies"], "build": project["build-system"]["requires"]}
wanted = set(project["project"]["dependencies"])
for part in sys.argv[1:]:
    wanted |= set(lists[part])
sys.stdout.write("".join(f"{requirement}\n" for requirement in sorted(wanted)))
