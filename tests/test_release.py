"""What is published: the sdist has all that is compiled, metadata are true, the workflow calls what is checked."""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpreter(path: Path, version: str, code: int = 0) -> None:
    """A program that says that it is this version of Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\nexit {code}\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    maturin = shutil.which("maturin", path=str(Path(sys.executable).parent)) or shutil.which("maturin")
    if maturin is None or shutil.which("cargo") is None:
        pytest.skip("skipped: no maturin and cargo to make an sdist with")
    folder = tmp_path_factory.mktemp("sdist")
    line = [maturin, "sdist", "--out", str(folder)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.tar.gz")
    # tarfile warns or has no filters, as the version of Python is.
    subprocess.run(["tar", "xzf", str(made)], cwd=folder, check=True)
    return folder / made.name.removesuffix(".tar.gz")


def test_the_sdist_has_what_is_built_and_what_is_said(sdist: Path) -> None:
    for name in ("Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "pyproject.toml"):
        assert (sdist / name).read_bytes() == (ROOT / name).read_bytes(), name
    ours = {path.relative_to(ROOT) for path in (ROOT / "python").rglob("*.py*") if "__pycache__" not in path.parts}
    assert {path.relative_to(sdist) for path in (sdist / "python").rglob("*.py*")} == ours
    assert (sdist / "python/gristmill/py.typed").exists()
    assert not list(sdist.rglob("*.so"))


def test_the_sdist_resolves_to_the_same_crates(sdist: Path) -> None:
    """It lacks the crates of the command: Cargo takes them out of the lock, and must not be forbidden to."""
    done = subprocess.run(
        ["cargo", "metadata", "--offline", "--format-version", "1"],
        cwd=sdist,
        capture_output=True,
        text=True,
        check=False,
    )
    if "registry" in done.stderr and done.returncode != 0:
        pytest.skip("skipped: not all crates are here")
    assert done.returncode == 0, done.stderr

    def crates(folder: Path) -> set[tuple[str, str]]:
        return {(one["name"], one["version"]) for one in tomllib.loads((folder / "Cargo.lock").read_text())["package"]}

    assert crates(sdist) < crates(ROOT)
    assert "locked" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]


def test_the_metadata_are_of_the_pythons_that_are_checked() -> None:
    check = script("release_check")
    said = [int(found[1]) for one in PROJECT["classifiers"] if (found := re.search(r":: 3\.(\d+)$", one))]
    assert said == list(range(check.FIRST, check.LAST + 1))
    assert PROJECT["requires-python"] == f">=3.{check.FIRST}"
    (numpy,) = PROJECT["dependencies"]
    assert numpy.removeprefix("numpy>=") == check.NUMPY[0].removeprefix("numpy==").removesuffix(".*")
    assert {"jax", "torch", "ray", "ray-train", "view", "arrow", "datasets", "minari", "envs", "lczero"} <= set(
        PROJECT["optional-dependencies"]
    )


#: How modules that an extra brings are called as packages, where that is another name.
PACKAGES = {
    "PIL": "pillow",
    "google": "protobuf",
    "google_crc32c": "google-crc32c",
    "ale_py": "ale-py",
    "dm_control": "dm-control",
    "procgen": "procgen-mirror",
}


def named(requirements: list[str]) -> set[str]:
    """Names of the packages that requirements are of."""
    found = [re.match(r"[A-Za-z0-9._-]+", one) for one in requirements]
    return {one[0] for one in found if one}


def test_each_extra_brings_what_it_is_named_for() -> None:
    """The message that something is missing names an extra that brings it."""
    extras = {name: named(requirements) for name, requirements in PROJECT["optional-dependencies"].items()}
    asked = set[tuple[str, str]]()
    for file in (ROOT / "python/gristmill").rglob("*.py"):
        asked |= set(re.findall(r'optional\(\s*"(\w+)[\w.]*", "([\w-]+)"', file.read_text()))
    assert len(asked) > 8
    for module, extra in asked:
        assert PACKAGES.get(module, module) in extras[extra], (module, extra)
    files = [file for folder in ("docs", "python") for file in (ROOT / folder).rglob("*")]
    texts = [ROOT / "README.md", *(file for file in files if file.suffix in {".md", ".py", ".pyi"})]
    said = {extra for text in texts for extra in re.findall(r"gristmill\[([\w-]+)\]", text.read_text())}
    assert len(said) > 5
    assert said <= set(extras)


def test_what_is_installed_says_the_extras_of_the_project() -> None:
    found: dict[str, set[str]] = {}
    for one in importlib.metadata.requires("gristmill") or []:
        if (extra := re.search(r"extra == ['\"]([\w-]+)['\"]", one)) is not None:
            found.setdefault(extra[1], set()).update(named([one]))
    wanted = {name: named(requirements) for name, requirements in PROJECT["optional-dependencies"].items()}
    # An extra that brings nothing is in the list of extras alone.
    assert found == {name: packages for name, packages in wanted.items() if packages}
    assert set(importlib.metadata.metadata("gristmill").get_all("Provides-Extra") or []) == set(wanted)


def test_each_python_is_found_once_and_only_if_it_runs(tmp_path: Path) -> None:
    check = script("release_check")
    interpreter(tmp_path / "bin/python3.11", "3 11")
    interpreter(tmp_path / "bin/python3.12", "no Python", 1)
    interpreter(tmp_path / "pyenv/3.11.7/bin/python", "3 11")
    interpreter(tmp_path / "pyenv/3.12.1/bin/python", "3 12")
    interpreter(tmp_path / "pyenv/3.13.0/bin/python", "3 12")
    found = check.pythons(str(tmp_path / "bin"), tmp_path / "pyenv")
    assert found == {11: str(tmp_path / "bin/python3.11"), 12: str(tmp_path / "pyenv/3.12.1/bin/python")}


def test_a_wheel_of_another_version_is_refused(tmp_path: Path) -> None:
    wheel = str(tmp_path / "gristmill-9.9.9-cp311-abi3-x.whl")
    line = [sys.executable, str(ROOT / "scripts/release_check.py"), "--wheel", wheel]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not of version" in done.stderr


def test_the_smoke_test_passes_where_the_package_is_installed() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts/smoke.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("it works\n")


def test_the_workflow_publishes_only_what_was_checked() -> None:
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    steps = [step.get("run", "") for step in jobs["check"]["steps"]]
    assert "make release-check" in steps
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {word for step in steps for word in re.findall(r"make ([a-z-]+)", step)} <= set(targets)
    assert jobs["publish"]["needs"] == "check"
    assert "tag" in jobs["publish"]["if"]
    assert "://" not in text
    asked = next(step["with"]["python-version"] for step in jobs["check"]["steps"] if "python-version" in str(step))
    assert sorted(asked.split()) == [f"3.{minor}" for minor in range(11, 15)]
