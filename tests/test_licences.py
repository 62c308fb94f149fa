"""Which crates may be used, as scripts/licences.py finds it in deny.toml, and what wheels say of them."""

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "scripts/licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["licences"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("MIT OR Apache-2.0", True),
        ("MIT/Unlicense", True),
        ("GPL-3.0-or-later", False),
        ("MIT OR GPL-2.0-only", True),
        ("MIT AND GPL-2.0-only", False),
        ("(MIT OR GPL-2.0-only) AND ISC", True),
        ("MIT AND (LGPL-2.1 OR GPL-2.0-only)", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("ISC WITH LLVM-exception", False),
        ("GPL-2.0-only OR MIT AND ISC", True),
    ],
)
def test_expressions_are_met_or_not(licences: ModuleType, expression: str, allowed: bool) -> None:
    rules = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"}
    assert licences.is_allowed(expression, rules) is allowed


@pytest.mark.parametrize("expression", ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "AND MIT"])
def test_what_is_no_expression_is_refused(licences: ModuleType, expression: str) -> None:
    with pytest.raises(ValueError, match=r" in | after "):
        licences.is_allowed(expression, {"MIT", "Apache-2.0"})


def workspace(*crates: tuple[str, str, str, list[str]]) -> dict[str, Any]:
    """What cargo says of crates: name, licence, source, and what they use."""
    packages = [
        {"id": name, "name": name, "version": "1.0.0", "license": licence, "source": source or None}
        for name, licence, source, _ in crates
    ]
    nodes = [
        {"id": name, "deps": [{"pkg": used, "dep_kinds": [{"kind": None}]} for used in uses]}
        for name, _, _, uses in crates
    ]
    return {"packages": packages, "resolve": {"nodes": nodes}}


def test_what_deny_toml_refuses_is_named(licences: ModuleType) -> None:
    rules = {
        "licenses": {"allow": ["MIT"]},
        "bans": {
            "deny": [{"crate": "tokio", "wrappers": ["net"], "reason": "threads"}, {"crate": "bad", "reason": "x"}]
        },
    }
    fine = workspace(
        ("mill", "MIT", "", ["net"]), ("net", "MIT", "registry+x", ["tokio"]), ("tokio", "MIT", "registry+x", [])
    )
    assert licences.faults(fine, rules) == []
    wrong = workspace(
        ("mill", "MIT", "", ["net", "tokio", "bad", "gpl"]),
        ("net", "MIT", "git+x", []),
        ("tokio", "MIT", "registry+x", []),
        ("bad", "MIT", "registry+x", []),
        ("gpl", "GPL-3.0", "registry+x", []),
    )
    assert [fault.split(";")[0] for fault in licences.faults(wrong, rules)] == [
        "net 1.0.0: it comes from git+x",
        "gpl 1.0.0: its licence is GPL-3.0",
        "tokio: used by ['mill']",
        "tokio: deny.toml lets ['net'] use it, which do not",
        "bad: used by ['mill']",
    ]


def test_notices_have_each_text_once(licences: ModuleType, tmp_path: Path) -> None:
    crates = []
    for name, text in (("one", "Be free."), ("two", "Be free."), ("three", None)):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "LICENSE-MIT").write_text(text)
        manifest = str(tmp_path / name / "Cargo.toml")
        crates.append({"name": name, "version": "1.0.0", "license": "MIT", "manifest_path": manifest})
    text = licences.notices(crates)
    assert text.count("Be free.") == 1
    assert "one 1.0.0 (MIT)\ntwo 1.0.0 (MIT)\n\nBe free." in text
    assert "three 1.0.0 (MIT)\n\nIt ships no text of its licence." in text


def test_this_workspace_keeps_its_rules(licences: ModuleType) -> None:
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    metadata = licences.read()
    assert licences.faults(metadata, rules) == []
    names = [crate["name"] for crate in licences.shipped(metadata)]
    assert {"object_store", "rusqlite", "pyo3", "clap"} <= set(names)
    assert "proptest" not in names
