"""A wheel, the gristmill program and notices -> the wheel with the program among its scripts and the notices among its
licences; says how large it is.

Refuses a program that needs a newer C library than the tag of the wheel promises, and a wheel of 25 MB or more.
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

MOST = 25_000_000


def main(program: Path, notices: Path, wheel: Path) -> None:
    """Puts the program and the notices into the wheel."""
    data = program.read_bytes()
    tag = re.search(r"manylinux_2_(\d+)", wheel.name)
    needs = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)), default=0)
    if tag and needs > int(tag[1]):
        sys.exit(f"wheel: {program} needs glibc 2.{needs}; the tag of {wheel.name} promises 2.{tag[1]}")
    staged = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(staged, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        script = f"{record.split('.dist-info')[0]}.data/scripts/gristmill"
        added = {
            script: (data, 0o755),
            record.replace("RECORD", f"licenses/{notices.name}"): (notices.read_bytes(), 0o644),
        }
        for info in old.infolist():
            if info.filename != record and info.filename not in added:
                new.writestr(info, old.read(info), compresslevel=9)
        rows = [row for row in csv.reader(io.StringIO(old.read(record).decode())) if row and row[0] not in added]
        for name, (text, mode) in added.items():
            about = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            about.external_attr = (0o100000 | mode) << 16
            about.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(about, text, compresslevel=9)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
            rows.insert(-1, [name, f"sha256={digest}", str(len(text))])
        listed = io.StringIO()
        csv.writer(listed, lineterminator="\n").writerows(rows)
        new.writestr(record, listed.getvalue())
    os.replace(staged, wheel)
    size = wheel.stat().st_size
    sys.stdout.write(f"{wheel}: {size / 1e6:.1f} MB\n")
    if size >= MOST:
        sys.exit(f"wheel: {size} bytes; expected less than {MOST}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
