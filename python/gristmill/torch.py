"""Batches as PyTorch tensors, without a copy; data sets for its loaders; collate functions for existing code."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import get_spawning_popen
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from gristmill.arrays import Array
from gristmill.batch import Batch
from gristmill.config import Path
from gristmill.demos.crossing import Crossing, Ring, can_share
from gristmill.demos.mixing import MixedLoader, PairLoader
from gristmill.encoders import Augment, BinnedEV, EdgeForm, HardMove, Steps, Tokens, ValueField, ValueTargets
from gristmill.errors import StateError
from gristmill.games import Games
from gristmill.loader import DataLoader as RowLoader
from gristmill.pairs import PairBatch, PairSet
from gristmill.rows import Rows
from gristmill.source import open as open_path

#: Batches of a worker that a consumer may keep before PyTorch has to bring others over.
_KEPT = 6

#: A function from row numbers to named tensors and counts, as `torch.utils.data.DataLoader` takes it.
Collate: TypeAlias = Callable[[Sequence[int]], dict[str, Any]]


def tensors(arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    """The same memory as tensors, by name."""
    return {name: torch.utils.dlpack.from_dlpack(array) for name, array in arrays.items()}


@overload
def batches(loader: RowLoader, alias: str = "") -> Iterator[dict[str, torch.Tensor]]: ...
@overload
def batches(loader: MixedLoader[Any]) -> Iterator[dict[str, Any]]: ...
def batches(loader: RowLoader | MixedLoader[Any], alias: str = "") -> Iterator[dict[str, Any]]:
    """The batches of a loader as tensors, by name; shapes and dtypes are those of the loader's arrays.

    Of pairs and steps, the names are those that `named` gives.
    """
    if isinstance(loader, MixedLoader):
        return (named(batch) for batch in loader)
    return (tensors(batch.asdict()) for batch in loader.batches(alias))


def named(batch: PairBatch | Mapping[str, Any]) -> dict[str, Any]:
    """A batch of pairs or steps as tensors, under the names and in the forms that representation learners take.

    `extra_context` is an empty list where there is none; `traj_ts_ids` is a list of two int64 tensors (B,), of
    trajectories and of steps. Of steps, `infos` stays a list of dictionaries.
    """
    if isinstance(batch, PairBatch):
        found: dict[str, Any] = {name: _tensor(array) for name, array in batch.asdict().items()}
        return {
            **found,
            "extra_context": found.get("extra_context", []),
            "traj_ts_ids": [*found["traj_ts_ids"].unbind(1)],
        }
    return {name: values if isinstance(values, list) else _tensor(values) for name, values in batch.items()}


def _named_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """`named` of the batch that has these values."""
    return named(PairBatch(**values))


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.utils.dlpack.from_dlpack(array) if isinstance(array, Array) else torch.from_numpy(array)


class BatchStream(IterableDataset[dict[str, Any]]):
    """The batches of a `PairLoader` or `StepLoader` for PyTorch's loaders: `DataLoader(stream, batch_size=None)`.

    Workers take turns batch by batch, so that their number changes nothing. Each iteration goes over the next pass, an
    abandoned one is not taken up again. Workers that are made anew for each iteration know nothing of the last: call
    `set_epoch` before each, as with PyTorch's samplers, or use `DataLoader` of this module. It can be pickled, and its
    iterator has a state, as loaders with a state want it.
    """

    def __init__(self, loader: MixedLoader[Any], *, raw: bool = False) -> None:
        super().__init__()
        #: Where the next iteration begins.
        self.loader = loader
        #: Whether batches stay as the loader makes them.
        self.raw = raw
        self._begun: int | None = None
        # For each worker the memory that it makes batches in, where the loader of this module has made some.
        self._rings: list[Ring] = []

    def __getstate__(self) -> dict[str, Any]:
        # Memory is shared with workers alone: while they are started.
        return {**self.__dict__, "_rings": self._rings if get_spawning_popen() is not None else []}

    def __len__(self) -> int:
        """Batches of a pass, of all workers together."""
        return len(self.loader)

    def __iter__(self) -> _Turns:
        """The batches of a pass that fall to this worker."""
        if self._begun is not None:
            self.loader.set_epoch(self._begun + 1)
        self._begun = self.loader.epoch
        return _Turns(self)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration goes over this pass.

        Raises:
            ConfigError: there is no such pass.
        """
        self.loader.set_epoch(epoch)
        self._begun = None

    def state_dict(self) -> dict[str, Any]:
        """Where the current iteration began, or where the next one begins."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration begins where the state says.

        Raises:
            StateError: it is of other data or another configuration, or says nowhere to go.
        """
        self.loader.load_state_dict(state)
        self._begun = None


class _Turns(Iterator[dict[str, Any]]):
    """The batches of one pass that fall to one worker."""

    def __init__(self, stream: BatchStream) -> None:
        worker = get_worker_info()
        self._place = (0, 1) if worker is None else (worker.id, worker.num_workers)
        self._loader, self._raw = stream.loader, stream.raw
        self._epoch = stream.loader.epoch
        self._starts = stream.loader.starts()[self._place[0] :: self._place[1]]
        self._ring = stream._rings[self._place[0]] if worker is not None and stream._rings else None
        self._made = _named_pairs if isinstance(stream.loader, PairLoader) else named
        self._next = 0

    def __next__(self) -> Any:
        if self._next >= len(self._starts):
            raise StopIteration
        start = self._starts[self._next]
        found: Crossing | dict[str, Any] | None = None
        if self._ring is not None:
            found = self._loader.crossing_at(self._epoch, start, self._ring, self._made)
        # Where the consumer keeps many batches, PyTorch brings the others over as it brings any tensors.
        if found is None:
            made = self._loader.batch_at(self._epoch, start)
            found = made if self._raw else named(made)
        self._next += 1
        return found

    def state_dict(self) -> dict[str, Any]:
        """How many batches were taken, of which."""
        starts = [self._starts.start, self._starts.stop, self._starts.step]
        return {"worker": list(self._place), "pass": self._epoch, "starts": starts, "taken": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on behind the batches that were taken.

        Raises:
            StateError: it is of another worker, of another number of them, or of other batches.
        """
        own = self.state_dict()
        for key in ("worker", "pass", "starts"):
            if state.get(key) != own[key]:
                raise StateError(f"`{key}` is {state.get(key)!r}, here {own[key]!r}")
        self._next = int(state["taken"])


class DataLoader(TorchDataLoader[dict[str, Any]]):
    """PyTorch's `DataLoader` over the batches of any loader, from where it stands: for Lightning, Fabric,
    `accelerate`, and loops of one's own.

        for batch in gm.torch.DataLoader(loader, num_workers=4, pin_memory=True): ...

    Each iteration goes over what is left of a pass; the next one over the next pass, whatever the number of workers.
    The state is that of the loader behind the last batch that was delivered, however many are under way. Options are
    PyTorch's, but for those of batches, samplers and shuffling, which are the loader's.

    Of a `PairLoader` or `StepLoader` workers make batches in memory that this process has, too, so that no array is
    copied or pickled on its way; there is room for `prefetch_factor` and six more batches of each worker. Streams and
    rows of packs come from the loader's own threads: no worker is started, whatever `num_workers` says. Of those
    `length` says how many batches one iteration gives at most: Lightning takes one batch ahead where it does not know
    the length, and would lose it in a checkpoint, so give a stream one.
    """

    def __new__(cls, loader: MixedLoader[Any] | RowLoader | None = None, **options: Any) -> DataLoader:
        """Another class for streams and rows of packs."""
        made = StreamLoader if cls is DataLoader and isinstance(loader, RowLoader) else cls
        found: DataLoader = super().__new__(made)
        return found

    def __init__(self, loader: MixedLoader[Any] | RowLoader, *, num_workers: int = 0, **options: Any) -> None:
        _refuse(options)
        if not isinstance(loader, MixedLoader):
            raise TypeError(f"expected a loader of gristmill, got {type(loader).__name__}")
        stream = BatchStream(loader)
        super().__init__(stream, batch_size=None, num_workers=num_workers, **options)
        self._loader, self._stream = loader, stream
        self._expected: tuple[int, int] | None = None

    def __iter__(self) -> Any:
        """The batches that are left of this pass."""
        loader = self._loader
        epoch, starts = loader.epoch, loader.starts()
        if self._expected != (epoch, starts.start):
            # Workers that stayed would continue elsewhere.
            self._iterator = None
        self._stream._begun = None
        self._expected = None
        if self.num_workers and (self._iterator is None or not self.persistent_workers):
            self._share()
        for start, batch in zip(starts, super().__iter__(), strict=True):
            loader.move(epoch, start + starts.step)
            yield batch
        self._expected = (epoch + 1, 0)

    def _share(self) -> None:
        """Memory for the batches of new workers: as many as are on their way, and some that the consumer keeps."""
        slots = (self.prefetch_factor or 0) + _KEPT
        try:
            self._stream._rings = [self._loader.ring(slots) for _ in range(self.num_workers if can_share() else 0)]
        except OSError:
            # Then PyTorch brings the batches over.
            self._stream._rings = []

    def set_epoch(self, epoch: int) -> None:
        """The next iteration goes over this pass.

        Raises:
            ConfigError: there is no such pass.
        """
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader behind the last batch that was delivered."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says, with any number of workers.

        Raises:
            StateError: it is of other data or another configuration, or says nowhere to go.
        """
        self._loader.load_state_dict(state)


def _refuse(options: Mapping[str, Any]) -> None:
    """Refuses options that are the loader's."""
    for name in ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "collate_fn"):
        if name in options:
            raise TypeError(f"`{name}` is the loader's: batches are made before they come here")


#: Options of workers, where none is started.
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


class StreamLoader(DataLoader):
    """`DataLoader` of a stream, or of rows of a pack."""

    def __init__(
        self, loader: RowLoader, *, num_workers: int = 0, alias: str = "", length: int | None = None, **options: Any
    ) -> None:
        _refuse(options)
        if length is not None and length < 1:
            raise ValueError(f"length {length}; expected at least 1 batch")
        plain = {name: value for name, value in options.items() if name not in _OF_WORKERS}
        TorchDataLoader.__init__(self, RowStream(loader, alias, length), batch_size=None, **plain)
        self._loader: Any = loader

    def __iter__(self) -> Any:
        """The batches that are left of this pass, `length` at most."""
        return TorchDataLoader.__iter__(self)

    def set_epoch(self, epoch: int) -> None:
        """Passes follow each other by themselves: nothing is to be done."""


class RowStream(IterableDataset[dict[str, Any]]):
    """The batches of a stream, or of rows of a pack, as tensors."""

    def __init__(self, loader: RowLoader, alias: str = "", length: int | None = None) -> None:
        super().__init__()
        self._loader, self._alias, self._length = loader, alias, length

    def __len__(self) -> int:
        """Batches of an iteration.

        Raises:
            TypeError: their number is unknown.
        """
        return len(self._loader) if self._length is None else self._length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The batches that are left of this pass."""
        taken = itertools.islice(self._loader.batches(self._alias), self._length)
        return (tensors(batch.asdict()) for batch in taken)

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader."""
        return self._loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says."""
        self._loader.load_state_dict(state)


def convert(batch: Any) -> dict[str, Any]:
    """A batch of any loader as tensors, by name: a `collate_fn` for PyTorch's `DataLoader(loader, batch_size=None)`."""
    return tensors(batch.asdict()) if isinstance(batch, Batch) else named(batch)


# PyTorch iterates over what calls itself an iterable data set.
IterableDataset.register(RowLoader)
IterableDataset.register(MixedLoader)


class SelectionDataset(Dataset[dict[str, Any]]):
    """Frames of any selection by number, for PyTorch's samplers: rows of 2048, positions, steps of trajectories.

        torch.utils.data.DataLoader(gm.torch.SelectionDataset(games.train), batch_size=256, shuffle=True)

    A number gives one frame, without the batch axis; a list of numbers gives a batch, as from a batch sampler with
    `batch_size=None`. Workers that are started in any way take it, where the selection can be sent to them.
    """

    def __init__(self, source: Rows | Games, encoder: Any = None, *, seed: int = 0, epoch: int = 0) -> None:
        super().__init__()
        if isinstance(source, Rows) and encoder is None:
            raise TypeError("rows need an encoder, such as gristmill.g2048.HardMove()")
        self._source, self._encoder, self._seed, self._epoch = source, encoder, seed, epoch

    def __len__(self) -> int:
        """How many frames there are."""
        return self._source.num_frames

    def __getitem__(self, index: int | Sequence[int]) -> dict[str, Any]:
        """One frame, or a batch of them.

        Raises:
            IndexError: there is no such number.
            FormatError: a frame that cannot be read; it says which.
        """
        if isinstance(index, int | np.integer):
            return {name: array[0] for name, array in self[[int(index)]].items()}
        if isinstance(self._source, Rows):
            return tensors(self._source.encode(self._encoder, index, seed=self._seed, epoch=self._epoch))
        return tensors(self._source.encode(index, self._encoder))


class PairDataset(Dataset[dict[str, Any]]):
    """Pairs or steps by number, for PyTorch's samplers: `PairDataset(constructor.over(demos))`.

    A number gives one of them, without the batch axis; a list of numbers gives a batch, as from a batch sampler with
    `batch_size=None`. The names are those of `named`.
    """

    def __init__(self, pairs: PairSet[Any]) -> None:
        super().__init__()
        self._pairs = pairs

    def __len__(self) -> int:
        """How many there are."""
        return len(self._pairs)

    def __getitem__(self, index: int | Sequence[int]) -> dict[str, Any]:
        """One of them, or a batch.

        Raises:
            IndexError: there is no such number.
        """
        if not isinstance(index, int | np.integer):
            return named(self._pairs[list(index)])
        one = named(self._pairs[[int(index)]])
        return {
            name: [each[0] for each in value] if isinstance(value, list) else value[0] for name, value in one.items()
        }


def make_collate_macroxue(
    dataset: Rows | Path,
    tokenizer: Path,
    *,
    rotate: Augment = False,
    flip: Augment = False,
    value_targets: ValueTargets | None = None,
    value_field: ValueField | None = None,
    value_bins: tuple[float, float, int] | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `targets` (int64, (B, 4)) and `n_classes`.

    With `value_targets`, of packs that have values, also into `value_targets`: float32, (B,) or (B, bins).
    The tokenizer is read here, once: the same file for all batches.

    Args:
        dataset: a pack, or rows of one; numbers count within them.
        tokenizer: a `tokenizer.json` of version 2.
        rotate: quarter turns, drawn for each row from seed, row and epoch.
        flip: mirrors, likewise.
        value_targets: `"scalar"` or `"two_hot"`, as of the encoders; likewise `value_field` and `value_bins`.
        value_field: which number.
        value_bins: of the two-hot form.
        seed: of the augmentation.
        epoch: of the augmentation.
    """
    encoder = Tokens(
        tokenizer,
        rotate=rotate,
        flip=flip,
        value_targets=value_targets,
        value_field=value_field,
        value_bins=value_bins,
    )
    return _collate(dataset, encoder, seed, epoch, {"n_classes": encoder.n_classes})


def make_collate_steps(
    dataset: Rows | Path,
    target_mode: Literal["hard_move", "binned_ev"],
    *,
    edges: Sequence[float] | None = None,
    edge_form: EdgeForm = "special_zero_one",
    rotate: Augment = False,
    flip: Augment = False,
    value_targets: ValueTargets | None = None,
    value_field: ValueField | None = None,
    value_bins: tuple[float, float, int] | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `branch_values` (float32, (B, 4)), and

    - with `hard_move`: `move_targets` (int64, (B,));
    - with `binned_ev`: `branch_bin_targets` (int64, (B, 4)), `branch_mask` (bool, (B, 4)) and `n_bins`.

    Arguments are as for `make_collate_macroxue` and `BinnedEV`.
    """
    if target_mode == "hard_move":
        move = HardMove(
            rotate=rotate, flip=flip, value_targets=value_targets, value_field=value_field, value_bins=value_bins
        )
        return _collate(dataset, move, seed, epoch, {})
    if target_mode != "binned_ev":
        raise ValueError(f"target_mode {target_mode!r}; expected 'hard_move' or 'binned_ev'")
    encoder = BinnedEV(
        edges=edges,
        edge_form=edge_form,
        rotate=rotate,
        flip=flip,
        value_targets=value_targets,
        value_field=value_field,
        value_bins=value_bins,
    )
    return _collate(dataset, encoder, seed, epoch, {"n_bins": encoder.n_bins})


def _collate(dataset: Rows | Path, encoder: Steps, seed: int, epoch: int, counts: Mapping[str, int]) -> Collate:
    return RowCollate(dataset if isinstance(dataset, Rows) else open_path(dataset), encoder, seed, epoch, counts)


@dataclass(frozen=True, eq=False)
class RowCollate:
    """A collate function: row numbers into tensors and counts. Workers that are started in any way take it."""

    rows: Rows
    encoder: Steps
    seed: int
    epoch: int
    #: Numbers that stand in every batch.
    counts: Mapping[str, int]

    def __call__(self, indices: Sequence[int]) -> dict[str, Any]:
        """The tensors of these rows.

        Raises:
            IndexError: there is no such row.
            FormatError: a row that cannot be encoded; it says which.
        """
        numbers = np.asarray(indices, dtype=np.int64)
        made = self.rows.encode(self.encoder, numbers, seed=self.seed, epoch=self.epoch)
        return {**tensors(made), **self.counts}
