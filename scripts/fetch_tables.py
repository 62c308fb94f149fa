"""Fetches the Syzygy tables of three and four men into a folder: `python fetch_tables.py FOLDER`.

They lie in the source package of python-chess, which pip downloads; only the tables are kept. A folder that has
them already is left alone.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "chess==1.11.2"
SHA256 = "a8b43e5678fdb3000695bdaa573117ad683761e5ca38e591c4826eba6d25bb39"
TABLES = 70


def main(folder: Path) -> None:
    """Fetches, checks and unpacks."""
    if len(list(folder.glob("*.rtb[wz]"))) == TABLES:
        return
    with tempfile.TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--no-binary", ":all:", "--dest", scratch, PACKAGE], check=True)
        [archive] = Path(scratch).glob("*.tar.gz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            sys.exit(f"{archive.name} is not the package that is known")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as package:
            for member in package:
                name = Path(member.name)
                if name.suffix in (".rtbw", ".rtbz") and name.parent.name == "regular":
                    bytes_of = package.extractfile(member)
                    assert bytes_of is not None
                    (folder / name.name).write_bytes(bytes_of.read())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
