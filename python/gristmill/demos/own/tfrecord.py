"""A TFRecord file -> its records, each held against its checksums; the framing alone, whatever is in them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: What checksums are masked with, so that a checksum of checksums is none.
_MASK = 0xA282EAD8


def records(path: str, max_bytes: int) -> Iterator[bytes]:
    """The records of a file.

    Raises:
        MissingPackageError: google-crc32c is not installed.
        FormatError: the file ends within a record, a checksum is another, or a record takes more than `max_bytes`.
        OSError: it cannot be read.
    """
    crc32c = optional("google_crc32c", "rlds")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        number, offset = 0, 0

        def refused(kind: str, says: str) -> FormatError:
            text = f"{path}: record {number} at byte {offset}: {kind}: {says}"
            return FormatError(text, kind=kind, source=path, chunk=number, offset=offset)

        while offset < size:
            head = file.read(12)
            if len(head) < 12:
                raise refused("truncated", f"{len(head)} bytes; a record begins with 12")
            length, crc = struct.unpack("<QI", head)
            if crc != _masked(crc32c.value(head[:8])):
                raise refused("corrupt", "the checksum of its length is another; is this a TFRecord file?")
            if length > size - offset - 16:
                raise refused("truncated", f"{length} bytes and a checksum; the file has {size - offset - 12} more")
            if length > max_bytes:
                raise refused("too_large", f"{length} bytes; the bound is {max_bytes}")
            data = file.read(length)
            tail = file.read(4)
            if len(data) < length or len(tail) < 4:
                raise refused("truncated", "the file became shorter while it was read")
            if struct.unpack("<I", tail)[0] != _masked(crc32c.value(data)):
                raise refused("corrupt", f"the checksum of its {length} bytes is another")
            yield data
            number, offset = number + 1, offset + length + 16


def _masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
