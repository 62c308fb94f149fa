"""Holds the crates of the lock file against deny.toml, or writes what their licences want to be said in a wheel.

    licences.py check           names licences that are not allowed, and crates that are banned; exits with 1 for them
    licences.py notices FILE    the crates that are linked into the wheel, with the texts of their licences

`cargo deny check licenses bans sources` reads the same file, and says more; it takes minutes to install.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CARGO = os.environ.get("CARGO", "cargo")

#: Files of a crate that say under which terms it comes.
_TEXTS = re.compile(r"(?i)^(licen[cs]e|copying|notice|copyright|unlicense)")

#: What a wheel links.
_SHIPPED = ("gristmill-cli", "gristmill-python")

Metadata = dict[str, Any]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an expression of SPDX can be met with these licences; `/` is the `OR` of old manifests.

    Raises:
        ValueError: it is no expression.
    """
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def any_of() -> bool:
        found = all_of()
        while words and words[0] == "OR":
            words.pop(0)
            found = all_of() or found
        return found

    def all_of() -> bool:
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        if not words or words[0] in (")", "OR", "AND", "WITH"):
            raise ValueError(f"no licence where one should be in {expression!r}")
        if (word := words.pop(0)) == "(":
            found = any_of()
            if not words or words.pop(0) != ")":
                raise ValueError(f"no closing bracket in {expression!r}")
            return found
        if words[:1] == ["WITH"]:
            word = " ".join((word, *words[:2]))
            del words[:2]
        return word in allowed

    found = any_of()
    if words:
        raise ValueError(f"{words[0]!r} after the end of {expression!r}")
    return found


def faults(metadata: Metadata, rules: dict[str, Any]) -> list[str]:
    """What deny.toml refuses in the crates of a workspace."""
    packages = {package["id"]: package for package in metadata["packages"]}
    allowed, found = set(rules["licenses"]["allow"]), []
    for package in packages.values():
        said = package["license"]
        if not said or not is_allowed(said, allowed):
            found.append(
                f"{package['name']} {package['version']}: its licence is {said}; deny.toml allows {sorted(allowed)}"
            )
        if package["source"] and not package["source"].startswith("registry+"):
            found.append(
                f"{package['name']} {package['version']}: it comes from {package['source']}; expected a registry"
            )
    users = defaultdict(set)
    for node in metadata["resolve"]["nodes"]:
        for used in node["deps"]:
            users[packages[used["pkg"]]["name"]].add(packages[node["id"]]["name"])
    for ban in rules["bans"]["deny"]:
        others = users[ban["crate"]] - set(ban.get("wrappers", []))
        present = any(package["name"] == ban["crate"] for package in packages.values())
        if present and (others or not ban.get("wrappers")):
            found.append(f"{ban['crate']}: used by {sorted(others)}; banned, for {ban['reason']}")
        if unused := set(ban.get("wrappers", [])) - users[ban["crate"]]:
            found.append(f"{ban['crate']}: deny.toml lets {sorted(unused)} use it, which do not")
    return found


def shipped(metadata: Metadata) -> list[dict[str, Any]]:
    """The crates of others that are linked into what a wheel holds, by name and version."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    reached, ahead = set(), [crate for crate, package in packages.items() if package["name"] in _SHIPPED]
    while ahead:
        if (crate := ahead.pop()) not in reached:
            reached.add(crate)
            linked = (d["pkg"] for d in nodes[crate]["deps"] if any(kind["kind"] is None for kind in d["dep_kinds"]))
            ahead.extend(linked)
    found = [packages[crate] for crate in reached if packages[crate]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def notices(crates: list[dict[str, Any]]) -> str:
    """The texts of the licences of crates, each text once, with the crates that have it."""
    of_text = defaultdict(list)
    for crate in crates:
        folder = Path(crate["manifest_path"]).parent
        texts = [path for path in sorted(folder.iterdir()) if path.is_file() and _TEXTS.match(path.name)]
        name = f"{crate['name']} {crate['version']} ({crate['license']})"
        for text in {path.read_text(errors="replace").strip() for path in texts} or {
            "It ships no text of its licence."
        }:
            of_text[text].append(name)
    head = "gristmill holds compiled code of these libraries, under their licences.\n"
    parts = [
        f"{chr(10).join(sorted(names))}\n\n{text}\n" for text, names in sorted(of_text.items(), key=lambda one: one[1])
    ]
    return f"\n{'-' * 80}\n\n".join([head, *parts])


def read(*more: str) -> Metadata:
    """What cargo knows of the workspace."""
    command = [CARGO, "metadata", "--locked", "--format-version", "1", *more]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    metadata: Metadata = json.loads(done.stdout)
    return metadata


def main(words: list[str]) -> int:
    """Runs what the words say; the exit status."""
    match words:
        case ["check"]:
            found = faults(read(), tomllib.loads((ROOT / "deny.toml").read_text()))
            sys.stderr.write("".join(f"licences: {fault}\n" for fault in found))
            return 1 if found else 0
        case ["notices", file]:
            Path(file).write_text(notices(shipped(read("--filter-platform", "x86_64-unknown-linux-gnu"))))
            return 0
    sys.stderr.write(__doc__ or "")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
