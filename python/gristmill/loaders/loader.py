"""The loader: batches from a configuration, for as long as they are wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from gristmill import _gristmill
from gristmill.chess import Tensors
from gristmill.config import DataLoaderConfig, Path, Skip, to_json
from gristmill.errors import EndOfStream
from gristmill.frameworks import turns
from gristmill.loaders import metrics
from gristmill.loaders.batch import Batch
from gristmill.loaders.certificate import Level
from gristmill.loaders.hearing import LOGGER, Hearing
from gristmill.loaders.outputs import ChunkAnchor, Output, TensorSpec
from gristmill.loaders.sampling import Blocks, Hanse
from gristmill.loaders.sources import advice, feed
from gristmill.loaders.states import Missing, OldestNeeded, Vanished, check_missing
from gristmill.loaders.tracing import Traced
from gristmill.options.arguments import named
from gristmill.options.weights import Weights
from gristmill.packs.again import make_again
from gristmill.packs.encoders import Steps
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.trajectories import Fields
from gristmill.pairs import Constructor, PairSet, Prepare, Trajectories
from gristmill.pairs.generated import Generator
from gristmill.records.arrays import Array
from gristmill.stores import absolute
from gristmill.views import View

#: Seconds between two checks for new events while a call waits.
_HEAR = 0.5


#: What a loader feeds.
Feedable: TypeAlias = DataLoaderConfig | Rows | Games | Trajectories | PairSet[Any]


class DataLoader(Traced):
    """Delivers the batches that a `DataLoaderConfig` describes, of the rows of a pack, or of demonstrations.

        gm.DataLoader(gm.presets.lc0("games/"))
        gm.DataLoader(gm.open("pack/").where("result != 0"), batch_size=4096, seed=1)
        gm.DataLoader(rows.train, encoder=gm.g2048.Tokens("tokenizer.json", rotate=True), batch_size=4096, seed=1)
        gm.DataLoader(gm.open("demos.tar.zst"), encoder=gm.Fields(["obs", "acts"]), batch_size=256)
        gm.DataLoader([demos, others], weights=[2, 1], pairs=gm.pairs.TemporalOffset("dynamics"), batch_size=256)

    Nothing runs until `start`, `with`, or the first request for a batch. Any thread may take batches; each is
    delivered once. While a call waits, other Python threads run and Ctrl-C interrupts it. A loader belongs to
    the process that made it: a forked child gets `ForkedError`, and may drop its copy.

    Args:
        source: a configuration; or rows or games of a pack, to which all that follows belongs, or several of these. Or
            demonstrations: in files, as `gristmill.open` gives them, arrays (`Columns`, a dictionary of arrays), pairs
            that a constructor made over them, or several of these. Several are a list, or a dictionary by name.
        encoder: what to make of each row; of games of chess `gristmill.chess.Tensors`, by default `planes`, `probs` and
            `values`; of demonstrations `gristmill.Fields`, by default every field, or a constructor of
            `gristmill.pairs`.
        pairs: of demonstrations, which steps stand together: a constructor of `gristmill.pairs`, or a function.
        weights: how often each of several packs or demonstrations is chosen, in their order or by name; equally often
            by default. Weights that change are given by the batch from which they hold: `{0: [1, 1], 1000: [3, 1]}`.
        exhausted: when one of several has given all its rows it starts over in a new order (`"restart"`), the pass ends
            (`"stop"`), or it is left out and the weights of the others stand (`"drop"`).
        nominal_length: rows of a pass over several; as many as they have by default.
        pad: where the shapes of several differ, fill up with zeros to the largest.
        prepare: conversions of pictures and floats of demonstrations.
        view: what stands for a row, where it is not the row alone: one of `gristmill.views`.
        batch_size: rows of a batch, of all ranks together; 1024 where nothing else is said.
        epochs: passes over the rows, each row once in each; by default as many as there are loops. A loop goes over
            what is left of a pass, the next one over the next.
        joined: whether batches run on across the ends of passes, so that all but the very last are full. A loop then
            goes over all passes that are left, and never ends without `epochs`.
        shuffle: whether rows come in random order, the same for the same seed, which they do unless it is `False`;
            `Blocks` for packs beyond memory.
        sampling: draws games by their weight, and positions in them, instead, with repetition; an epoch is as many
            draws as there are positions.
        last_batch: what becomes of the rows left over at the end of a pass: a smaller batch (`"keep"`, the default),
            nothing, or a full batch with zero rows (`Batch.rows` tells how many are real).
        seed: root of order and augmentation; drawn once and kept in the state when absent.
        threads: worker threads; never changes a batch.
        queue_capacity: batches that may wait for the consumer; 4 by default.
        rank: which of `world_size` processes this is. All of them together get the same rows in each batch, however
            many they are. Both belong to streams, too, which need `lanes` for it in their configuration. Where they
            are not given, torch.distributed, JAX or the launcher's environment variables say them, if any does.
        world_size: how many processes share each batch; divides `batch_size`, and the lanes of a stream.
        skip: batches to leave out of the run, say after a spike of the loss: `(18200, 18350)` are batches 18200 to
            18349, `"train:18200..18350"` those of one output of several. All others keep their numbers and contents.
            A state records what was left out before it, and a restore keeps that; later batches can still be left out.
        ledger: file, or URL in a bucket, in which to note what is delivered, for `gristmill verify-run`: each rank its
            own beside it. A run that resumes from a state continues its ledger; a new run needs a new one.
        require: how good the shuffle has to be, as `certificate` measures it: `"none"`, `"weak"`, `"fair"` or `"good"`.

    Raises:
        ConfigError: the configuration cannot run; it names the stage and field. Or it is not clear which rank this is,
            or the shuffle is worse than `require`.
        EncoderError: the rows do not have what the encoder needs; it says which encoder fits.
    """

    _engine: _gristmill.Loader

    @named
    def __init__(
        self,
        source: Feedable | Sequence[Feedable] | Mapping[str, Any],
        *,
        encoder: Steps | Tensors | Fields | Constructor[Any] | None = None,
        pairs: Constructor[Any] | Generator | None = None,
        weights: Weights | Mapping[str, float] | Mapping[int, Mapping[str, float]] | None = None,
        exhausted: Literal["restart", "stop", "drop"] | None = None,
        nominal_length: int | None = None,
        pad: bool | None = None,
        prepare: Prepare | None = None,
        view: View | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        joined: bool | None = None,
        shuffle: bool | Blocks | None = None,
        sampling: Hanse | None = None,
        last_batch: Literal["keep", "drop", "pad"] | None = None,
        seed: int | None = None,
        threads: int | None = None,
        queue_capacity: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        skip: Sequence[Skip] = (),
        ledger: Path | None = None,
        require: Level | None = None,
    ) -> None:
        options = {
            name: value for name, value in locals().items() if name not in ("self", "source", "require", "__class__")
        }
        own = {"skip": list(skip) or None, "ledger": None if ledger is None else os.fspath(ledger)}
        self._engine, self._rank, self._world, self._of, self._of_steps = feed(source, {**options, **own})
        # What another process makes the loader again from, and where it stands then.
        self._given = {**options, "source": source, "rank": self._rank, "world_size": self._world}
        self._stands: tuple[str, tuple[Any, ...], dict[str, Any]] | None = None
        self._begun = False
        if require is not None:
            self.certificate(require=require)
        self._hearing, self._made_in, self._turns = Hearing(), os.getpid(), turns.by_output()

    @property
    def config(self) -> DataLoaderConfig:
        """The configuration, with the seed that was drawn for it once the loader has started.

        Raises:
            TypeError: a loader of rows, which has none.
        """
        return DataLoaderConfig.from_json(self._engine.stages())

    @property
    def seed(self) -> int | None:
        """Root of every random draw; `None` until one was drawn."""
        return self._engine.seed()

    @property
    def rank(self) -> int:
        """Which of `world_size` processes this is."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many processes share each batch."""
        return self._world

    @property
    def of_steps(self) -> bool:
        """Whether rows are steps or pairs of data sets, whose values are as they lie there; an encoder makes others."""
        return self._of_steps

    @property
    def num_rows(self) -> int | None:
        """Rows of an epoch, of all ranks together, without those that the view leaves out; `None` of a stream."""
        return self._engine.rows()

    @property
    def num_batches(self) -> int | None:
        """Batches in all epochs, with those that are left out; `None` where there is no known end."""
        return self._engine.batches()

    def seek(self, batch: int) -> None:
        """Goes to a batch of a loader of rows, at no cost; call it before the loader starts.

        Raises:
            StateError: after the last batch, or the loader runs already.
            TypeError: a loader of a stream.
        """
        self._engine.seek(batch)
        self._stands = ("seek", (batch,), {})

    @property
    def outputs(self) -> dict[str, Output]:
        """What is delivered, by alias."""
        described = (
            Output(alias, rows, tuple(TensorSpec(name, dtype, tuple(shape)) for name, dtype, shape in tensors))
            for alias, rows, tensors in self._engine.outputs()
        )
        return {output.alias: output for output in described}

    def start(self) -> None:
        """Starts the loader's threads, unless they run already."""
        self._begun = True
        self._engine.start()
        self._hear()

    def stop(self) -> list[str]:
        """Stops within a second and returns the names of threads left behind in a read that hangs.

        Batches that were delivered stay valid; later calls raise `StoppedError`.
        """
        return self._engine.stop()

    def get_next(self, alias: str = "", *, timeout: float | None = None) -> Batch:
        """The next batch of an output; waits for it.

        Raises:
            EndOfStream: there are no more; only finite streams end.
            TimeoutError: `timeout` seconds have passed.
            FormatError: a bad chunk, with `bad_chunks="raise"`.
            OSError: a file that cannot be read, with `io_errors="raise"`; else the call waits for it, and warns.
            StageError: a stage cannot continue.
            StoppedError: the loader was stopped, perhaps while this call waited.
        """
        batch = self._next(alias, timeout)
        if batch is None:
            raise TimeoutError(f"no batch within {timeout} seconds")
        return batch

    def maybe_get_next(self, alias: str = "") -> Batch | None:
        """The next batch if it is ready, else `None`. Raises like `get_next`."""
        return self._next(alias, 0.0)

    def batches(self, alias: str = "") -> Iterator[Batch]:
        """Iterates over what is left of a pass; the next iteration goes over the next one.
        A pass of a stream with `epochs=` ends with the batch that completes its rows, counted, for its reservoir mixes
        them across that end. Of `joined` passes or inputs it goes over all that is left; of other streams without end.

        Raises:
            EndOfStream: all epochs are over, and a loop would do nothing.
        """
        begun, ended = False, self._engine.passes_ended(alias)
        while True:
            try:
                batch = self._of_pass(ended, alias)
            except EndOfStream as over:
                if not begun:
                    raise EndOfStream(f"{over}; {advice(self._engine.config())}") from None
                return
            if batch is None:
                return LOGGER.info("pass: it is over")
            yield batch
            begun = True

    def _of_pass(self, ended: int, alias: str) -> Batch | None:
        """The next batch of a pass, known by how many ended before it; `None` after it. Threads may share one."""
        with self._turns[alias]:
            return None if self._engine.passes_ended(alias) != ended else self.get_next(alias)

    @property
    def epoch(self) -> int | None:
        """The pass that the next batch of rows belongs to, from 0; `None` of a stream, and where passes are joined."""
        return self._engine.epoch()

    def state_dict(self) -> dict[str, Any]:
        """The state after the last delivered batch: small, plain, and ready at once."""
        state: dict[str, Any] = json.loads(self._engine.state())
        return state

    def load_state_dict(
        self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, missing: Missing = "refuse"
    ) -> None:
        """Continues from a state, to the bit; call it before the loader starts.

        Of a stream that several ranks shared each rank has its part: a list of the parts of all ranks is the whole, and
        any number of ranks can continue from it.

        Args:
            state: what `state_dict` gave, or a list of what it gave on each rank.
            missing: where files are gone that the state needs, whether the start refuses it with their names or does
                without them (see `vanished`); all other draws stay what they were. What the `spill` folder holds is not
                gone: "spill" says that one relies on it. A loader of rows needs its whole pack, whatever is said here.

        Raises:
            StateError: the state belongs to another configuration or other files, or the loader runs already.
            TypeError: `state` is no state.
        """
        check_missing(missing)
        if isinstance(state, str) or not isinstance(state, Mapping | Sequence):
            says = "expected what state_dict gave; `load` takes the path of a saved state"
            raise TypeError(f"{type(state).__name__} is no state; {says}")
        whole = state if isinstance(state, Mapping) else list(state)
        self._engine.restore(to_json(whole), missing)
        self._stands = ("load_state_dict", (whole,), {"missing": missing})

    def save(self, path: Path) -> None:
        """Writes the state to disk or a bucket; durable when it returns, and at no moment half written.

        A file; for a stream that several ranks share a folder, into which each rank writes its part: call it on all of
        them after the same step. The step before is kept until all have, so that a crash meanwhile loses nothing.
        Of rows the state is the same on every rank, and any of them may write it. Folders above it are made. In a
        bucket a name that ends with `.json` is a file, and any other a folder of steps.

        Raises:
            OSError: it cannot be written.
        """
        if _gristmill.is_local(path):
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self._engine.save(path)

    def load(self, path: Path, *, missing: Missing = "refuse") -> None:
        """Continues from what `save` wrote, by however many ranks; call it before the loader starts.

        Args:
            path: file or folder.
            missing: as for `load_state_dict`.

        Raises:
            StateError: as `load_state_dict`, and for a folder that lacks the part of a rank.
            OSError: it cannot be read.
        """
        check_missing(missing)
        self._engine.load(path, missing)
        self._stands = ("load", (absolute(os.fspath(path)),), {"missing": missing})

    @property
    def vanished(self) -> list[Vanished]:
        """The files that a loader does without after `missing="skip"`; known once it has started."""
        return [Vanished(*file) for file in self._engine.vanished()]

    @property
    def oldest_needed(self) -> dict[str, OldestNeeded]:
        """By loader stage, such as `load`: the oldest file that this loader may still need, or a run that resumes from
        the states that it saved last, or from the one that it was given. Older files may be deleted:

            for path in games.glob("*.gz"):
                if loader.oldest_needed["load"].may_delete(path.name):
                    path.unlink()

        States that are kept elsewhere say by themselves what they need, as `state["oldest_needed"]`; of several ranks
        each has needs of its own. Before the first scan is in nothing is known; a loader of rows needs its whole pack,
        and says nothing.
        """
        return {stage: OldestNeeded(*oldest) for stage, oldest in self._engine.oldest_needed().items()}

    def metrics(self, *, flat: bool = False) -> dict[str, Any]:
        """Load per stage, queues, pool, bad chunks, drops, and who waits for whom (`stall`): now and since start.

        Args:
            flat: numbers alone, by `stage/name`, times in seconds, as `wandb.log` and the like take them:
                `tensors/rows`, `tensors/queue_waiting`, `consumer_wait_seconds`, ...
        """
        values: dict[str, Any] = json.loads(self._engine.metrics())
        return metrics.flat(values) if flat else values

    def explain(self) -> str:
        """What limits since the first batch, and what one more thread, memory or a compact form would bring."""
        return self._engine.explain()

    def serve_metrics(self, address: str = "127.0.0.1:0", *, token: str | None = None) -> str:
        """Serves the loader's numbers until it stops; starts it. Returns the address with the port that was taken.

        `http://<address>/metrics` is text for Prometheus, `/status` what `gristmill top <address>` shows. With a
        token (at least 16 characters) readers have to send `Authorization: Bearer <token>`; an address that other
        machines can reach needs one.

        Raises:
            ConfigError: the address cannot be listened on, or the token is missing or too simple.
        """
        return self._engine.serve_metrics(address, token)

    def control(
        self, *, reset_chunk_anchor: bool = False, set_chunk_anchor: str | None = None
    ) -> dict[str, ChunkAnchor]:
        """Asks every pool for its chunk anchor, or changes it, at any time; returns the answers by name of the stage.

        A reset makes the newest file the anchor and answers with the count before that; setting a key leaves the count
        as it is until that file comes. With both, the reset wins. A loader of rows has no pool and answers nothing.
        """
        answers = self._engine.control(reset_chunk_anchor, set_chunk_anchor)
        return {stage: ChunkAnchor(key, since) for stage, key, since in answers}

    def source_path(self, source: int) -> str | None:
        """The file that a source number in the tensor `ids` stands for.

        None in a loader of rows, and of a file that has left the disk and that no window or saved state needs any more.
        """
        return self._engine.source_path(source)

    def __reduce__(self) -> tuple[Any, ...]:
        """The loader as another process makes it again: of the same data, standing where this one was put.

        Raises:
            TypeError: it runs already.
        """
        if self._begun:
            message = "a loader that runs belongs to its process; send it before, or send its state_dict()"
            raise TypeError(f"{message} to a loader that is made there")
        return make_again, (DataLoader, self._given, self._stands)

    def _next(self, alias: str, timeout: float | None, *, at_once: bool = True) -> Batch | None:
        """The next batch; what is not given at once counts when the feed says so."""
        self._begun = True
        next_of = self._engine.next if at_once else self._engine.take
        try:
            found = next_of(alias, _HEAR if timeout is None else timeout)
            while found is None and timeout is None:
                self._hear()  # Why it waits.
                found = next_of(alias, _HEAR)
        finally:
            self._hear()
        if found is None:
            return None
        number, rows, columns = found
        arrays: dict[str, Any] = {
            # What is no array, such as dictionaries beside steps, is listed.
            name: memory if isinstance(memory, list) else Array.over(memory, tuple(shape), dtype)
            for name, dtype, shape, memory in columns
        }
        return Batch(number, rows, arrays)

    def _hear(self) -> None:
        self._hearing.hear(self._engine)

    def __len__(self) -> int:
        """Batches of a pass, without those that are left out; of rows that are `joined`, of all epochs: `num_batches`.

        Raises:
            TypeError: a stream, or joined rows without an end.
        """
        if (known := self._engine.length()) is None:
            raise TypeError("the number of batches is unknown: of a stream, or of joined passes without epochs=")
        return known

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Batch]:
        """As `batches`: a loop goes over what is left of a pass, and one that would find nothing raises."""
        worker = turns.of_worker()
        return self.batches() if worker is None else turns.batches(self, *worker)

    def __next__(self) -> Batch:
        try:
            return self.get_next()
        except EndOfStream:
            raise StopIteration from None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.stop()

    def __repr__(self) -> str:
        parts = [] if self._of is None else [self._of]
        return f"DataLoader({', '.join([*parts, *map(repr, self.outputs.values())])})"
