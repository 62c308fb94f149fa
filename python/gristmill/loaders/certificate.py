"""The certificate of a shuffle: what an epoch is made of, and how its batches compare with those of a perfect one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

#: How close a shuffle comes to a perfect one, from the worst on.
Level: TypeAlias = Literal["none", "weak", "fair", "good"]


@dataclass(frozen=True)
class Figure:
    """One figure of a shuffle; docs/guide/certificate.md explains each.

    Attributes:
        name: `same_game`, `neighbours`, `places`, `balance` or `window`.
        says: what it counts.
        value: what was measured.
        perfect: what a perfect shuffle of the same rows gives.
        of: rows, pairs or batches that it was measured on.
        level: what it says of the shuffle.
    """

    name: str
    says: str
    value: float
    perfect: float
    of: int
    level: Level


@dataclass(frozen=True)
class Certificate:
    """What is known of a loader before it feeds anything (docs/guide/certificate.md).

    Attributes:
        of: `"rows"` of packs, or a `"stream"`.
        output: the output of a stream; empty for the only one.
        level: the worst level of its figures.
        says: why, in a sentence.
        plan: what an epoch is made of: `batch_rows`, `ranks`, and where they are known `rows`, `batches`,
            `dropped_rows`, `repeated_rows`, `window_games`, `games`, `rows_per_use`, `memory_bytes`.
        figures: what was measured, by name.
        mix: of several packs each with `source`, `pack`, `rows`, `wanted`, `realised`, `uses`.
        sample: `batches` and `rows` that it was measured on.
        advice: the smallest changes that make it better, where it is not good.
        fetching: what an epoch costs, where the pack lies in a bucket and was not read into memory, else `None`:
            `says`, `data_bytes`, `kept_bytes`, `metadata_bytes`, `cache_limit`, `cache_others`, `holds`, `terms` and
            `epochs` (`first` and `later` with `requests`, `bytes`, `money`; `error`, `is_sampled`, `disk_bytes`,
            `first_batch_seconds`); docs/guide/buckets.md explains them.
    """

    of: Literal["rows", "stream"]
    output: str
    level: Level
    says: str
    plan: dict[str, Any]
    figures: dict[str, Figure]
    mix: tuple[dict[str, Any], ...]
    sample: dict[str, int]
    advice: tuple[str, ...]
    fetching: dict[str, Any] | None

    @staticmethod
    def read(document: dict[str, Any]) -> Certificate:
        """The certificate of a document as `gristmill plan --json` prints it."""
        figures = {figure["name"]: Figure(**figure) for figure in document["figures"]}
        mix, advice = tuple(document.get("mix", ())), tuple(document["advice"])
        more = {"figures": figures, "mix": mix, "advice": advice, "fetching": document.get("fetching")}
        return Certificate(**{**document, **more})

    def _repr_html_(self) -> str:
        """A table of the figures, for notebooks: static, without scripts."""
        from html import escape

        heads = ("figure", "measured", "perfect", "level", "counts")
        cells = [(f.name, f"{f.value:.4g}", f"{f.perfect:.4g}", f.level, f.says) for f in self.figures.values()]
        rows = ["".join(f"<th>{head}</th>" for head in heads)]
        rows += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in cells]
        table = "".join(f"<tr>{row}</tr>" for row in rows)
        advice = "".join(f"<p>advice: {escape(advice)}</p>" for advice in self.advice)
        fetching = f"<p>fetching: {escape(self.fetching['says'])}</p>" if self.fetching else ""
        return f"<p>{escape(self.says)}</p>{fetching}<table>{table}</table>{advice}"

    def __str__(self) -> str:
        """A line for each figure, below the sentence."""
        lines = [self.says]
        if self.fetching:
            lines.append(f"fetching: {self.fetching['says']}")
        for figure in self.figures.values():
            lines.append(
                f"{figure.name}: {figure.value:.4g}, perfect {figure.perfect:.4g} ({figure.level}): {figure.says}"
            )
        return "\n".join([*lines, *(f"advice: {advice}" for advice in self.advice)])
