"""Importing gristmill must stay cheap: no framework comes along. What it offers is what programs begin with."""

import ast
import graphlib
import subprocess
import sys
from collections.abc import Container
from pathlib import Path

import pytest


def test_no_framework_is_imported() -> None:
    program = (
        "import sys, gristmill\n"
        "heavy = [m for m in ('jax', 'torch', 'ray', 'gymnasium', 'tensorflow', 'pandas') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_takes_long_to_import_is_left_for_its_first_use() -> None:
    late = [
        *("importlib.metadata", "email", "hashlib", "html", "http", "multiprocessing", "pathlib", "random"),
        *("secrets", "sqlite3", "subprocess", "tarfile", "tempfile", "tomllib", "zipfile"),
        *("pyarrow", "h5py", "prometheus_client", "rich", "gristmill.demos.minari", "gristmill.demos.own.opening"),
        *("gristmill.command", "gristmill.compat", "gristmill.jobs.describing", "gristmill.jobs.arrow"),
    ]
    program = (
        "import sys, numpy\n"
        "before = set(sys.modules)\n"
        "import gristmill as gm\n"
        f"early = [name for name in {late!r} if name in set(sys.modules) - before]\n"
        "assert not early, early\n"
        "assert gm.__version__ and 'minari' in dir(gm.demos) and gm.demos.minari.write\n"
        "assert 'importlib.metadata' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_everything_in_all_exists() -> None:
    import gristmill

    assert [name for name in gristmill.__all__ if not hasattr(gristmill, name)] == []
    assert list(gristmill.__all__) == sorted(gristmill.__all__)


def test_the_tab_key_offers_what_programs_begin_with() -> None:
    program = (
        "import gristmill, types\n"
        "offered = [name for name in dir(gristmill) if not name.startswith('_')]\n"
        "assert len(offered) <= 46, offered\n"
        "late = {'compat', 'jax', 'ray', 'torch'}\n"
        "there = {name: getattr(gristmill, name) for name in offered if name not in late}\n"
        "modules = {name for name, value in there.items() if isinstance(value, types.ModuleType)}\n"
        "users = 'chess config demos envs errors g2048 pairs presets safe_pickle views'\n"
        "assert modules == set(users.split()), modules\n"
        "assert set(there) <= set(gristmill.__all__), set(there) - set(gristmill.__all__)\n"
        "assert gristmill.compat.__name__ == 'gristmill.compat' and gristmill.__version__\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_that_is_not_there_is_said_to_be_missing() -> None:
    import gristmill

    with pytest.raises(AttributeError, match="has no attribute 'DataLader'"):
        gristmill.DataLader  # noqa: B018


def test_what_is_not_installed_is_named_and_breaks_no_look_at_all_names() -> None:
    program = (
        "import sys, inspect, gristmill as gm\n"
        "sys.modules['torch'] = None\n"
        "assert 'verify' in dict(inspect.getmembers(gm)) and not hasattr(gm, 'torch')\n"
        "try:\n"
        "    gm.torch.batches\n"
        "except AttributeError as error:\n"
        "    assert 'gristmill.torch needs a package that is not installed' in str(error), error\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def modules_imported_by(path: Path, known: Container[str]) -> set[str]:
    """The modules of the package that a module imports as it is loaded: not in functions, not for types alone."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gristmill"):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else str(node.module) for name in inner}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("gristmill.")}
    return found


def test_modules_import_each_other_in_one_direction() -> None:
    root = Path(__file__).parents[1] / "python"
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (root / "gristmill").rglob("*.py")
    }
    graph = {name: modules_imported_by(path, files) & set(files) - {"gristmill", name} for name, path in files.items()}
    del graph["gristmill"]
    graphlib.TopologicalSorter(graph).prepare()


def test_rooms_have_what_they_are_named_for() -> None:
    root = Path(__file__).parents[1] / "python/gristmill"
    rooms = {path.parent.name for path in root.glob("*/__init__.py")}
    assert {"loaders", "packs", "chess", "g2048", "demos", "envs", "frameworks", "compat"} <= rooms
    flat = {path.stem for path in root.glob("*.py") if not path.stem.startswith("_")}
    assert flat == {"config", "errors", "jax", "presets", "ray", "safe_pickle", "stores", "torch", "views"}
    for path in root.glob("*/__init__.py"):
        assert path.read_text().startswith('"""'), path
