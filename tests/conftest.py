"""Fixtures: directories of generated games, the folder of real files where there is one, and machines of Ray."""

import os
import signal
from pathlib import Path

import pytest
from generated_games import write_games
from ray_machines import cluster, machines  # noqa: F401  (fixtures)


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps side indexes out of the cache of the user."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def interrupts() -> None:
    """Restores SIGINT, which programs in the background of a script inherit as ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def games(tmp_path: Path) -> Path:
    """A directory of 12 games with 20, 21 or 22 frames each, 252 in all."""
    return write_games(tmp_path / "games", 12)


@pytest.fixture
def shared() -> Path:
    """The folder of real files: GRISTMILL_SHARED, else `shared` beside the repository."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    folder = Path(os.environ.get("GRISTMILL_SHARED", beside))
    if not (folder / "data").is_dir():
        pytest.skip(f"skipped: no real files in {folder}; set GRISTMILL_SHARED")
    return folder


@pytest.fixture(scope="session")
def syzygy() -> Path:
    """The real tables of three and four men: GRISTMILL_SYZYGY, else where `make tables` puts them."""
    fetched = Path(__file__).resolve().parents[1] / ".venv" / "syzygy"
    folder = Path(os.environ.get("GRISTMILL_SYZYGY", fetched))
    if not (folder / "KQvK.rtbw").exists():
        pytest.skip(f"skipped: no tables in {folder}; run `make tables` or set GRISTMILL_SYZYGY")
    return folder
