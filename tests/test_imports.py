"""Importing gristmill must stay cheap: no framework comes along."""

import subprocess
import sys


def test_no_framework_is_imported() -> None:
    program = (
        "import sys, gristmill\n"
        "heavy = [m for m in ('jax', 'torch', 'ray', 'gymnasium', 'tensorflow', 'pandas') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_everything_in_all_exists() -> None:
    import gristmill

    assert [name for name in gristmill.__all__ if not hasattr(gristmill, name)] == []
    assert list(gristmill.__all__) == sorted(gristmill.__all__)
