"""An environment for each peer, of pinned requirements: `python bench/peers/install.py [NAME…] [--out target/peers]`.

A peer that does not install is said and left out. PyTorch is 4 GB large: whose requirements say `# with torch` sees the
packages of that one environment beside its own.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def packages(environment: Path) -> Path:
    """Where an environment has its packages."""
    return next((environment / "lib").glob("python*")) / "site-packages"


def installed(name: str, venvs: Path) -> bool:
    """Makes one environment as its requirements say; says what happened."""
    requirements, environment = HERE / "requirements" / f"{name}.txt", venvs / name
    text, stamp = requirements.read_text(), environment / "installed.txt"
    if stamp.exists() and stamp.read_text() == text:
        sys.stdout.write(f"{name}: there already\n")
        return True
    with_torch = "# with torch" in text
    if with_torch and name != "torch" and not installed("torch", venvs):
        sys.stdout.write(f"{name}: left out, since it needs torch\n")
        return False
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    if with_torch:
        (packages(environment) / "torch.pth").write_text(f"{packages(venvs / 'torch')}\n")
    command = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--requirement", requirements], check=False)
    if done.returncode:
        sys.stdout.write(f"{name}: did not install\n")
        return False
    stamp.write_text(text)
    sys.stdout.write(f"{name}: installed\n")
    return True


def main() -> None:
    """Installs what is named, or all."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("names", nargs="*", help="environments, all by default")
    said.add_argument("--out", type=Path, default=Path("target/peers"))
    options = said.parse_args()
    venvs = options.out.resolve() / "venvs"
    for name in options.names or sorted(path.stem for path in (HERE / "requirements").glob("*.txt")):
        installed(name, venvs)


if __name__ == "__main__":
    main()
