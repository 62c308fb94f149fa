"""The wheel in an empty environment where no Rust is: the README's first block, the command, and `python -m gristmill`.

Skipped unless `GRISTMILL_WHEEL` names one: `make wheel test-wheel`.
"""

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WHEEL = Path(os.environ.get("GRISTMILL_WHEEL", "")).resolve()

pytestmark = pytest.mark.skipif(
    not os.environ.get("GRISTMILL_WHEEL"), reason="no wheel is built: make wheel test-wheel builds and tests one"
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [f"{folder}/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", str(WHEEL)]
    subprocess.run(pip, check=True)
    return folder


def run(folder: Path, *words: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'venv/bin'}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8"}
    line = [str(word) for word in words]
    done = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert code is None or done.returncode == code, done
    return done


def test_the_wheel_is_small_and_says_what_it_is() -> None:
    assert WHEEL.stat().st_size < 25_000_000
    assert "abi3" in WHEEL.name
    assert re.search(r"manylinux_\d+_\d+", WHEEL.name), WHEEL.name
    with zipfile.ZipFile(WHEEL) as file:
        name = next(name for name in file.namelist() if name.endswith("METADATA"))
        about = file.read(name).decode()
        assert any(name.endswith(".data/scripts/gristmill") for name in file.namelist())
        (notices,) = (name for name in file.namelist() if name.endswith("licenses/THIRD-PARTY-NOTICES.txt"))
        assert "object_store" in file.read(notices).decode()
        (library,) = (one for one in file.infolist() if one.filename.endswith(".so"))
        assert library.file_size < 27_000_000
    for line in ("License-Expression: MIT OR Apache-2.0", "Classifier: Typing :: Typed", "# gristmill"):
        assert line in about


def test_the_first_block_of_the_readme(empty: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block is not None
    (empty / "first.py").write_text(block[1])
    run(empty, "python", "first.py")
    assert run(empty, "sh", "-c", "command -v cargo", code=None).returncode != 0


def test_the_command_and_the_module_are_one(empty: Path) -> None:
    run(empty, "gristmill", "generate", "chess", "fed", "--games", 20, "--seed", 1)
    for words in (["gristmill"], ["python", "-m", "gristmill"]):
        assert "rows" in run(empty, *words, "feed", "fed", "--epochs", 1, "--json").stdout
        version = run(empty, *words, "--version").stdout
        assert re.fullmatch(r"gristmill \d+\.\d+\.\d+ \(\S+( commit)?, \S+\)\n", version), version
        assert run(empty, *words, "nonsense", code=2).stderr
        assert "--env" in run(empty, *words, "generate", "random", "--help").stdout
    found = run(empty, "python", "-c", "import gristmill; print(gristmill.__version__)").stdout
    assert version.startswith(f"gristmill {found.strip()} (")


#: What each of the extras brings, by the names of the packages.
EXTRAS = {
    "jax": {"jax"},
    "torch": {"torch"},
    "ray": {"ray", "rich"},
    "ray-train": {"ray", "torch"},
    "envs": {"gymnasium", "rich"},
    "minari": {"h5py", "pillow", "pyarrow", "rich"},
    "lczero": {"protobuf"},
    "view": set[str](),
}

#: What needs the extras that are small enough to be installed here.
NEEDS_THEM = """
import gristmill.compat.lczero, gristmill.demos.minari, gristmill.envs
import google.protobuf, gymnasium, h5py, PIL.Image, pyarrow
gristmill.compat.lczero.DataLoaderConfig
print("there")
"""


def test_the_extras_bring_what_they_are_named_for(empty: Path) -> None:
    code = "import importlib.metadata as m; print(*m.requires('gristmill'), sep='\\n')"
    lines = run(empty, "python", "-c", code).stdout.splitlines()
    for extra, packages in EXTRAS.items():
        own = [line for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]
        assert {re.split(r"[^\w.-]", line)[0] for line in own} == packages, extra
    code = "import importlib.metadata as m; print(*m.metadata('gristmill').get_all('Provides-Extra'))"
    assert set(EXTRAS) <= set(run(empty, "python", "-c", code).stdout.split())


def test_what_small_extras_bring_is_what_their_modules_need(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    wanted = f"{WHEEL}[envs,lczero,minari,view]"
    pip = [f"{tmp_path}/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", wanted]
    subprocess.run(pip, check=True)
    assert run(tmp_path, "python", "-c", NEEDS_THEM).stdout == "there\n"
    assert "--addr" in run(tmp_path, "gristmill", "view", "--help").stdout


def test_signals_reach_it(empty: Path) -> None:
    run(empty, "gristmill", "generate", "chess", "endless", "--games", 20, "--seed", 1)
    line = [f"{empty}/venv/bin/python", "-m", "gristmill", "feed", "endless", "--seed", "1"]
    with subprocess.Popen(line, cwd=empty, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # Something was said: it runs.
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130)
