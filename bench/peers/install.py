"""Makes an environment for each peer from pinned requirements.

    python bench/peers/install.py [NAME…] [--out target/peers]

It reports a peer that does not install, and leaves it out. PyTorch takes 4 GB. So all peers with `# with torch` in
their requirements use the packages of one environment of PyTorch beside their own.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def packages(environment: Path) -> Path:
    """Returns the folder of an environment's packages."""
    return next((environment / "lib").glob("python*")) / "site-packages"


def installed(name: str, venvs: Path) -> bool:
    """Makes the environment of a peer, and prints what happened. Returns whether the environment is ready."""
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
    """Installs the named environments, or all."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("names", nargs="*", help="environments, all by default")
    said.add_argument("--out", type=Path, default=Path("target/peers"))
    options = said.parse_args()
    venvs = options.out.resolve() / "venvs"
    for name in options.names or sorted(path.stem for path in (HERE / "requirements").glob("*.txt")):
        installed(name, venvs)


if __name__ == "__main__":
    main()
