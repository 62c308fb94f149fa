"""A wheel and the gristmill program -> the wheel with the program among its scripts; says how large it is.

Refuses a program that needs a newer C library than the tag of the wheel promises, and a wheel of 20 MB or more.
"""

import base64
import csv
import hashlib
import io
import os
import re
import sys
import zipfile
from pathlib import Path

MOST = 20_000_000


def main(program: Path, wheel: Path) -> None:
    """Puts the program into the wheel."""
    data = program.read_bytes()
    tag = re.search(r"manylinux_2_(\d+)", wheel.name)
    needs = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)), default=0)
    if tag and needs > int(tag[1]):
        sys.exit(f"wheel: {program} needs glibc 2.{needs}; the tag of {wheel.name} promises 2.{tag[1]}")
    staged = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        script = f"{record.split('.dist-info')[0]}.data/scripts/gristmill"
        for info in old.infolist():
            if info.filename not in (record, script):
                new.writestr(info, old.read(info), compresslevel=9)
        about = zipfile.ZipInfo(script, (1980, 1, 1, 0, 0, 0))
        about.external_attr = 0o100755 << 16
        about.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(about, data, compresslevel=9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows = [row for row in csv.reader(io.StringIO(old.read(record).decode())) if row and row[0] != script]
        rows.insert(-1, [script, f"sha256={digest}", str(len(data))])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        new.writestr(record, text.getvalue())
    os.replace(staged, wheel)
    size = wheel.stat().st_size
    sys.stdout.write(f"{wheel}: {size / 1e6:.1f} MB\n")
    if size >= MOST:
        sys.exit(f"wheel: {size} bytes; expected less than {MOST}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
