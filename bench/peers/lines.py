"""Says which loader runs which work in which form: the lines of the table, in the order of the run."""

from dataclasses import dataclass, field
from typing import Any

#: The works that the bench measures: rows of a batch, and a description.
WORKS = {
    "rows": (1024, "rows of 48 bytes, each once a pass in a random order, batches of 1024"),
    "steps": (64, "steps at random, a picture of 3x64x64 and a number, batches of 64"),
    "shards.tar": (64, "the same steps out of tar shards, shuffled, batches of 64"),
    "shards.gz": (64, "the same, shards packed by gzip"),
    "shards.zst": (64, "the same, shards packed by zstd"),
    "games": (512, "games of chess to planes (f32), policy and values, shuffled by 8192 positions, batches of 512"),
}
#: Forms of gristmill that no peer has: shards in memory, compact tensors, a pack instead of a stream.
ASIDE = {"shards": ("open",), "games": ("bits", "pack", "packed bits of a pack")}
SHARDS = ("shards.tar", "shards.gz", "shards.zst")


@dataclass(frozen=True, eq=False)
class Line:
    """One loader in one form. `environment` is the name of a file in `requirements`, or empty for this Python."""

    work: str
    peer: str
    form: str
    module: str
    environment: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    #: What a reader must know to compare the line.
    note: str = ""
    #: Whether the line is a yardstick and no loader.
    yardstick: bool = False
    #: Whether the table leaves this form of gristmill out of the ratios, since the peers do something else.
    aside: bool = False

    @property
    def ours(self) -> bool:
        """Whether the loader is gristmill."""
        return self.peer == "gristmill"


def _ours(work: str, forms: dict[str, str]) -> list[Line]:
    found = []
    for form, note in forms.items():
        for threads in (1, 2) if form not in ("open", "arrays") else (1,):
            name = f"{form}, {threads} threads" if form not in ("open", "arrays") else form
            name = name.replace("1 threads", "1 thread")
            aside = form in ASIDE.get(work.split(".")[0], ())
            options = {"form": form, "threads": threads}
            found.append(Line(work, "gristmill", name, "ours", "", options, note, aside=aside))
    return found


def _records(work: str) -> list[Line]:
    """Returns the lines of peers that fetch records of fixed size by number."""
    found = [Line(work, "NumPy", "np.take of a mapped file", "array_of", note="a yardstick", yardstick=True)]
    for gathered, name in ((False, "by row"), (True, "by batch")):
        for workers in (0, 2):
            options = {"workers": workers, "gathered": gathered}
            found.append(Line(work, "torch DataLoader", f"{name}, {_workers(workers)}", "of_torch", "torch", options))
    packings = ("raw",) if work == "rows" else ("raw", "zstd")
    for packing in packings:
        for workers in (0, 2) if packing == "raw" else (0,):
            options = {"packing": packing, "workers": workers}
            form = f"{packing}, {_workers(workers)}"
            found.append(Line(work, "Grain", f"ArrayRecord, {form}", "of_grain", "grain", options))
            found.append(Line(work, "streaming", f"MDS, {form}", "of_streaming", "streaming", options))
            found.append(Line(work, "LitData", form, "of_litdata", "litdata", options))
        alone = {"packing": packing, "alone": True}
        found.append(Line(work, "ArrayRecord", f"reader by lists, {packing}", "of_grain", "grain", alone))
        found.append(Line(work, "bagz", f"reader by lists, {packing}", "of_bagz", "bagz", {"packing": packing}))
    buffer = "a buffer of 1000 rows, no random order"
    for workers in (0, 2):
        options = {"workers": workers}
        form = f"tar, {_workers(workers)}"
        found.append(Line(work, "webdataset", form, "of_webdataset", "webdataset", options, buffer))
    for form, note in (("by number", ""), ("iterable", "a buffer of 8192 rows, no random order")):
        found.append(Line(work, "HF datasets", form, "of_datasets", "datasets", {"form": form}, note))
    found.append(Line(work, "Lance", "take", "of_lance", "lance"))
    note = "it fetches by np.take, as its user writes it"
    found.append(Line(work, "SPDL", "pipeline, 2 threads", "of_spdl", "spdl", {"threads": 2}, note))
    note = "in memory, drawn with repeats"
    found.append(Line(work, "cpprb", "sample", "of_cpprb", "cpprb", note=note))
    return found


def _workers(count: int) -> str:
    return f"{count} workers" if count else "in process"


def _shards(work: str) -> list[Line]:
    """Returns the lines of loaders that read tar shards."""
    found = _ours(work, {"open": "unpacked once, held in memory", "stream": "unpacked in each pass, bounded memory"})
    for workers in (0, 2):
        options = {"workers": workers}
        found.append(
            Line(work, "webdataset", _workers(workers), "of_webdataset", "webdataset", options, "a buffer of 1000")
        )
    found.append(
        Line(
            work,
            "HF datasets",
            "webdataset, streaming",
            "of_datasets",
            "datasets",
            {"form": "shards"},
            "a buffer of 1000",
        )
    )
    if work != "shards.zst":
        found.append(Line(work, "SPDL", "tarfile, 2 threads", "of_spdl", "spdl", {"threads": 2}, "a buffer of 1000"))
    return found


def lines() -> list[Line]:
    """Returns all lines."""
    found = _ours(
        "rows", {"pack": "", "tokens of 2048": "the same bytes as moves of 2048, encoded to tokens and moves"}
    )
    found += _records("rows")
    found += _ours(
        "steps",
        {"pack": "blocks of a few pictures, packed", "raw": "codec raw", "arrays": "mapped arrays, uncompressed"},
    )
    found += _records("steps")
    for work in SHARDS:
        found += _shards(work)
    forms = {
        "stream": "",
        "bits": "planes as bits, which a device expands",
        "pack": "each position at random",
        "packed bits of a pack": "planes as bits, each position at random",
    }
    found += _ours("games", forms)
    for workers in (0, 2):
        note = "tars of games, decoded by NumPy in Python"
        options = {"workers": workers}
        found.append(
            Line("games", "webdataset", f"tar, {_workers(workers)}", "of_webdataset", "webdataset", options, note)
        )
    return found
