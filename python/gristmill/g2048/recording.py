"""Self-play, version 1, while it is played: boards of many games in shards, vectors beside them, and their database."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.options.arguments import named
from gristmill.records.layout import Layout

#: The row of self-play: 28 bytes, packed.
SELF_PLAY_ROW = Layout(_gristmill.Layout("[('run_id', '<u8'), ('step_idx', '<u4'), ('exps', '|u1', (16,))]"))

_CELLS = 16


class SessionRecorder:
    """The database of a session: its games and what is said of it all. What is put is there at once.

        with gm.g2048.SessionRecorder("runs/7") as session:
            session.set_meta("model_id", "v12")
            session.put_run(0, seed=5, steps=812, max_score=12000, highest_tile=1024)

    Args:
        folder: where `metadata.db` lies; both are made where they do not exist, and extended where they do. The
            entry `ts` says when, in seconds since 1970.
    """

    def __init__(self, folder: Path) -> None:
        os.makedirs(folder, exist_ok=True)
        self._database: _gristmill.Session | _gristmill.Recorder
        self._database = _gristmill.Session(os.path.join(folder, "metadata.db"))
        self._stamp()

    def _stamp(self) -> None:
        self.set_meta("ts", str(int(time.time())))

    def put_run(self, run_id: int, *, seed: int, steps: int, max_score: int, highest_tile: int) -> None:
        """Writes a game, over what was there under its id. `highest_tile` is a tile (2048), not an exponent."""
        self._database.put_run((run_id, seed, steps, max_score, highest_tile))

    def set_meta(self, key: str, value: str) -> None:
        """Writes an entry of the session, over what was there."""
        self._database.put_session(key, value)

    def get_meta(self, key: str) -> str | None:
        """An entry of the session; `None` where there is none."""
        return self._database.session(key)

    def close(self) -> None:
        """Closes everything; nothing can be written afterwards. A second call does nothing."""
        self._database.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SelfPlayWriter(SessionRecorder):
    """Records self-play: `steps-000001.npy`, ..., `embeddings-000001.npy`, ... and `metadata.db` of a folder.

        with gm.g2048.SelfPlayWriter("runs/7", embedding_size=512) as writer:
            writer.write(run_ids, step_indices, boards, embeddings)
            writer.put_run(0, seed=5, steps=812, max_score=12000, highest_tile=1024)

    Rows of many games may come in any order; `gristmill.open` reads the folder, and so do `numpy.load` and `sqlite3`.
    A shard appears whole, with its vectors. A process that is killed loses no shard, and no step of a game that was put
    into the database; `append=True` resumes with what it had written of the next shard.

    Args:
        folder: made where it does not exist. One process records there at a time.
        shard_max_steps: rows of every shard but the last.
        embedding_size: numbers in the vector of each step; `None` where steps have none.
        append: resume where an earlier recording ended, or was killed. Its games are closed: run ids must be new.

    Raises:
        ConfigError: there is a recording already, or other rows or vectors than these.
        OSError: another process records there; the folder cannot be written.
    """

    @named
    def __init__(
        self,
        folder: Path,
        *,
        shard_max_steps: int = 1_000_000,
        embedding_size: int | None = None,
        append: bool = False,
    ) -> None:
        if shard_max_steps < 1:
            raise ValueError(f"shard_max_steps: {shard_max_steps}, expected 1 or more")
        self._size = embedding_size or 0
        self._recorder = _gristmill.Recorder(os.fspath(folder), shard_max_steps, embedding_size, append)
        self._database = self._recorder
        self._stamp()

    @property
    def recovered(self) -> int:
        """Steps that a killed recorder had left and that are in the first shard now."""
        return self._recorder.recovered()

    def write(
        self,
        run_id: npt.ArrayLike,
        step_idx: npt.ArrayLike,
        exps: npt.ArrayLike,
        embeddings: npt.ArrayLike | None = None,
    ) -> None:
        """Appends steps; all or none of them.

        Args:
            run_id: integers of shape (n,), or one for all.
            step_idx: integers of shape (n,), or one for all.
            exps: integers of shape (n, 16) or (16,): exponents before the move, 0 to 16, row-major.
            embeddings: numbers of shape (n, embedding_size), where the writer takes some.

        Raises:
            ValueError: shapes or numbers that do not fit.
            FormatError: an exponent above 16, or a run of an earlier recording; `frame` is the index of the row.
        """
        boards = np.atleast_2d(np.asarray(exps))
        if boards.ndim != 2 or boards.shape[1] != _CELLS or boards.dtype.kind not in "iu":
            raise ValueError(f"exps: expected integers of shape (n, {_CELLS}), found {boards.dtype} {boards.shape}")
        rows = np.zeros(len(boards), SELF_PLAY_ROW.dtype)
        for name, numbers in (("run_id", np.asarray(run_id)), ("step_idx", np.asarray(step_idx)), ("exps", boards)):
            most = np.iinfo(rows[name].dtype).max
            if numbers.dtype.kind not in "iu" or numbers.ndim > rows[name].ndim:
                raise ValueError(
                    f"{name}: expected integers for {len(rows)} rows, found {numbers.dtype} {numbers.shape}"
                )
            if numbers.size and (int(numbers.min()) < 0 or int(numbers.max()) > most):
                raise ValueError(f"{name}: expected 0 to {most}, found {numbers.min()} to {numbers.max()}")
            rows[name] = numbers
        vectors = (
            np.zeros((len(rows), 0), "<f4") if embeddings is None else np.atleast_2d(np.asarray(embeddings, "<f4"))
        )
        if vectors.shape != (len(rows), self._size):
            raise ValueError(f"embeddings: expected shape {(len(rows), self._size)}, found {vectors.shape}")
        flat = np.ascontiguousarray(vectors).reshape(-1).view(np.uint8)
        self._recorder.write(rows.view(np.uint8), flat)

    def flush(self) -> None:
        """Completes the shard that is being written, so that readers see it; the next step begins another one."""
        self._recorder.rotate()
