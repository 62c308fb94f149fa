"""Places that are not folders of this machine: buckets and servers by their URLs, and files in memory.

Wherever data is read, a place is a path, a `file:` URL, or a URL of `s3:`, `gs:`, `az:`, `http:`, `https:` or
`memory:`: a stream's `directory`, `gristmill.open`, packs, and the jobs that read. Jobs, states and marks are written
to buckets as well. See docs/guide/places.md and docs/guide/buckets.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from gristmill import _gristmill

__all__ = ["Left", "Memory", "Requests", "at", "cache", "clean", "reach", "requests"]

_SCHEMES = ("s3://", "s3a://", "gs://", "gcs://", "az://", "abfs://", "abfss://", "http://", "https://", "sqs://")


def reach(
    url: str,
    *,
    endpoint: str | None = None,
    anonymous: bool = False,
    allow_http: bool = False,
    patience: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Says how a bucket, or every bucket of a scheme, is reached from now on. What is open already stays as it is.

        gristmill.stores.reach("s3://", endpoint="http://127.0.0.1:9000")
        gristmill.stores.reach("s3://open-games", anonymous=True)

    What is not said here comes from where the tools of each cloud look: environment variables, profiles, roles.

    Args:
        url: a bucket, such as `s3://games`, a queue of events, such as `sqs://games`, or a scheme, such as `s3://`.
        endpoint: the URL of the service, where it is not its usual one.
        anonymous: sign no request, for public buckets.
        allow_http: let requests pass without encryption to other machines; to this one they may without it.
        patience: seconds for which a request is tried again; 30 where nothing is said.
        settings: more of the client, by the names that obstore and the crate `object_store` have, such as
            `{"region": "eu-west-1", "access_key_id": "…"}`. They stay in this process.

    Raises:
        ValueError: `url` is of no bucket or scheme, or `patience` is not positive.
    """
    scheme = next((scheme for scheme in _SCHEMES if url.startswith(scheme)), None)
    if scheme is None or "/" in url.removeprefix(scheme).rstrip("/"):
        raise ValueError(f"{url!r} is neither a bucket, such as 's3://games', nor a scheme, such as 's3://'")
    if patience is not None and not patience > 0:
        raise ValueError(f"patience is a positive number of seconds; found {patience!r}")
    told = [(str(name), str(value)) for name, value in (settings or {}).items()]
    _gristmill.set_bucket(url if url == scheme else url.rstrip("/"), endpoint, anonymous, allow_http, patience, told)


def at(store: Any, path: str = "") -> str:
    """The place of a store that a program has already. gristmill reaches it from now on as that store does.

        store = obstore.store.S3Store("games", region="eu-west-1")
        pack = gristmill.open(gristmill.stores.at(store, "packs/june"))
        pack = gristmill.open(gristmill.stores.at(fsspec.filesystem("s3", anon=True), "games/packs/june"))

    gristmill cannot call a store's own function for credentials (`credential_provider`); it takes those of the
    environment instead.

    Args:
        store: a store of obstore (S3, Google, Azure, HTTP, local), or a file system of fsspec (`s3`, `gs`, `http`,
            `file`).
        path: a file or folder in it.

    Returns:
        A URL, or a path of this machine, for everything that takes places.

    Raises:
        TypeError: another kind of store.
    """
    from gristmill.frameworks.stores import place_of

    place, how = place_of(store, path)
    if how is not None:
        scheme, _, rest = place.partition("://")
        reach(f"{scheme}://{rest.partition('/')[0]}", **how)
    return place


def cache(folder: str | os.PathLike[str] | None = None, *, limit: int | None = None) -> None:
    """Says where the bytes that are fetched of packs are kept from now on, and how many at most.

    Several processes of a machine share them. Files that nobody uses make room for others.

    Args:
        folder: on a local disk; where nothing is said `gristmill/twins` in `$XDG_CACHE_HOME`, else in `~/.cache`.
        limit: bytes of files; half of what is free on that disk where nothing is said. Each file takes up to 16 KiB
            more for its name, folder and journal, and 8 bytes for each 256 KiB beyond the first 128 MiB.

    Raises:
        ValueError: `limit` is negative.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit is a number of bytes; found {limit!r}")
    _gristmill.set_cache(folder, limit)


@dataclass(frozen=True)
class Requests:
    """What was asked of one bucket by this process."""

    #: Requests, each counted once however often it was tried.
    requests: int
    #: Tries after the first.
    retries: int
    #: Second requests beside a slow first one.
    hedges: int
    #: Requests that were given up.
    failures: int
    #: Bytes that came.
    bytes: int


def requests() -> dict[str, Requests]:
    """What was asked of each bucket that this process opened, by its URL."""
    return {url: Requests(*counts) for url, counts in _gristmill.bucket_counts()}


@dataclass(frozen=True)
class Left:
    """What killed jobs left at a place in a bucket and beside it of shares, and older versions of a pack there."""

    place: str
    #: The claim: `writer`, `host`, `process`, `since` and `renewed` (seconds since 1970); `None` without one.
    claim: dict[str, Any] | None
    #: Whether a whole pack is there, which `clean` keeps.
    whole: bool
    #: The files that go: names below the place, and bytes. Of a whole pack those that only older versions have, and
    #: those of versions that no job finished.
    files: dict[str, int]
    #: Files beside the place that belong to no share that is done: names below the folder of shares, and bytes.
    shares: dict[str, int] = field(default_factory=dict)
    #: Shares on which processes worked within ten minutes, whose files are not among them.
    running: int = 0


def clean(url: str, *, dead: bool = False, dry_run: bool = False) -> Left:
    """Removes what killed jobs left at a place in a bucket, and beside it of shares.

    It keeps a whole pack, and shares that are done. Of a pack that games were added to it removes what only older
    versions have. Readers that opened one of these find its files gone, and end with an error.

    Args:
        url: the output of the job, such as `s3://games/june`.
        dead: the jobs are dead, although they said within the last ten minutes that they live.
        dry_run: look only.

    Raises:
        ConfigError: a place of this machine, or a job that may live.
        OSError: the bucket cannot be read or written.
    """
    left = json.loads(_gristmill.clean_place(url, dead, dry_run))
    return Left(**left | {"files": dict(left["files"]), "shares": dict(left["shares"])})


class Memory(MutableMapping[str, bytes]):
    """The files of the place `memory://NAME`, by name: bytes that are read like files on disk.

        drops = gristmill.stores.Memory("drops")
        drops["run1/training.1.gz"] = game
        loader = gristmill.DataLoader(gristmill.presets.lc0("memory://drops/run1"))

    They live as long as the process; two objects of one name are the same files. A stream that watches the place takes
    files in as they are written.

    Args:
        name: the name of the place: letters, digits, `.`, `_` and `-`.

    Raises:
        ValueError: the name has other characters.
    """

    def __init__(self, name: str) -> None:
        if not name or not all(letter.isalnum() or letter in "._-" for letter in name):
            raise ValueError(f"{name!r} names no place in memory; expected letters, digits, `.`, `_` and `-`")
        self.name = name
        self._compiled = _gristmill.MemoryFiles(name)

    def __getitem__(self, file: str) -> bytes:
        return self._compiled.read(file)

    def __setitem__(self, file: str, data: bytes) -> None:
        if not file or file.startswith("/") or any(part in ("", ".", "..") for part in file.split("/")):
            raise ValueError(f"{file!r} names no file; expected parts separated by single slashes")
        self._compiled.write(file, bytes(data))

    def __delitem__(self, file: str) -> None:
        if not self._compiled.remove(file):
            raise KeyError(file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._compiled.names())

    def __len__(self) -> int:
        return len(self._compiled.names())

    def __repr__(self) -> str:
        return f"Memory({self.name!r}, files={len(self)})"


def absolute(place: str) -> str:
    """A place as another process of this machine finds it: an absolute path, or the URL as it is."""
    return os.path.abspath(place) if _gristmill.is_local(place) else place
