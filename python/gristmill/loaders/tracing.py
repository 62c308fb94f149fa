"""What a loader says of its rows by their plan: where they come from, when they come, how well they are shuffled."""

from __future__ import annotations

import json
from typing import Any

from gristmill import _gristmill
from gristmill.loaders.certificate import Certificate, Level


class Traced:
    """A loader whose rows can be traced; `gristmill.DataLoader` is one."""

    _engine: _gristmill.Loader

    def certificate(
        self,
        *,
        alias: str = "",
        require: Level | None = None,
        latency: float = 0.05,
        bandwidth: float = 100e6,
        price_get: float | None = None,
        price_gb: float | None = None,
    ) -> Certificate:
        """How good the shuffle is, beside a perfect one, with what an epoch is made of (docs/guide/certificate.md).

        Of rows by their plan, of which a sample of batches is measured; no row is read. A stream is planned from its
        beginning over the files that there are: of games only lengths are read, where they were never counted.

        Args:
            alias: the output, of a stream.
            require: the level that it has to reach.
            latency: of a pack in a bucket, seconds until a request begins to be answered.
            bandwidth: bytes a second that the network gives.
            price_get: money for 1000 requests; without a price no money is said.
            price_gb: money for 1e9 bytes.

        Raises:
            ConfigError: there is no such output; the shuffle is worse than `require`, with what would mend it; or one
                of the last four is negative.
        """
        terms = (latency, bandwidth, price_get, price_gb)
        document: dict[str, Any] = json.loads(self._engine.certificate(alias, require, terms))
        return Certificate.read(document)

    def xray(
        self, batch: int, row: int | None = None, *, alias: str = "", survey: bool = False
    ) -> list[dict[str, Any]]:
        """Where the rows of any past or future batch, or one of them, come from, as this rank has them.

        Of each `batch`, `row`, `file`, `game`, `member` (what the file calls the game, or what was packed, where that
        is known) and `ply`; of rows of a pack also `epoch`, `pack_row` and `file_row`. Of a pack nothing is read. A
        stream is run again without its bytes: past batches by its seed or journal, later ones from where this loader
        stands, or from the state that it was given and has not started from; Ctrl-C interrupts it.

        Args:
            batch: its number.
            row: one row of it; all when absent.
            alias: the output, of a stream.
            survey: of a stream, whether games are read whose frames were never counted; the side index keeps counts.

        Raises:
            ConfigError: there is no such batch or row; or the seed of the stream is not known yet.
            StageError: games of the stream have to be surveyed first; or files that may still arrive decide.
        """
        rows: list[dict[str, Any]] = json.loads(self._engine.xray(batch, row, alias, survey))
        return rows

    def when(
        self,
        game: int | str,
        ply: int | None = None,
        *,
        source: int | None = None,
        epochs: tuple[int, int] | None = None,
    ) -> dict[str, Any]:
        """In which passes and batches the rows of a game of a pack were or will be fed: the inverse of `xray`.

        As `gristmill when --json` prints it; its page says what is in it. With several ranks `row` counts as in `rank`.

        Args:
            game: its id in the pack, or the name of what was packed.
            ply: one position of it; all when absent.
            source: number of its pack among several: a row may then come more than once in a pass, or not at all.
            epochs: the first pass and the one after the last; by default that of the next batch and the one after it.

        Raises:
            ConfigError: there is no such game (the nearest is named), ply or pass; or of several packs none is named.
            TypeError: of a stream, of pairs or steps, and of rows drawn by weight, whose orders have no inverse.
        """
        times: dict[str, Any] = json.loads(self._engine.when(str(game), source, ply, epochs))
        return times
