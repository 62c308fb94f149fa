"""PyTorch's `DataLoader` over any loader: for trainers that expect one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset

from gristmill.demos.mixing import MixedLoader
from gristmill.frameworks.feeds import Feed, RowFeed
from gristmill.frameworks.workers import PairFeed
from gristmill.loaders.loader import DataLoader as RowLoader

#: Options that are the loader's.
_OF_LOADER = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "collate_fn")
#: Options of workers, where none is started.
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


class DataLoader(TorchDataLoader[dict[str, Any]]):
    """PyTorch's `DataLoader` over the batches of any loader, from where it stands: for Lightning, Fabric,
    `accelerate`, and loops of one's own.

        for batch in gm.torch.DataLoader(loader, num_workers=4, pin_memory=True): ...

    Each iteration goes over what is left of a pass; the next one over the next pass, whatever the number of workers.
    The state is that of the loader after the last batch that was delivered, however many are under way. Options are
    PyTorch's, but for those of batches, samplers and shuffling, which are the loader's.

    Of a `PairLoader` or `StepLoader` workers make batches in memory that this process has, too, so that no array is
    copied or pickled on its way; there is room for `prefetch_factor` and six more batches of each worker. They stay for
    all passes, unless `persistent_workers=False` says that each pass starts its own. Streams and
    rows of packs come from the loader's own threads: no worker is started, whatever `num_workers` says. Of those
    `alias` is one of several outputs, and `length` says how many batches one iteration gives at most: epochs of an
    endless stream. How many a stream with `epochs=` has is known only when its games were read: Lightning then takes a
    batch ahead, which its checkpoints count as not given. `accelerate` takes one ahead always: what it prepared with
    `DataLoaderConfiguration(use_stateful_dataloader=True)` resumes after the last batch that was used.
    """

    def __init__(
        self,
        loader: MixedLoader[Any] | RowLoader,
        *,
        num_workers: int = 0,
        alias: str = "",
        length: int | None = None,
        **options: Any,
    ) -> None:
        for name in _OF_LOADER:
            if name in options:
                raise TypeError(f"`{name}` is the loader's: batches are made before they come here")
        feed: Feed
        if isinstance(loader, RowLoader):
            feed = RowFeed(loader, alias, length)
            options = {name: value for name, value in options.items() if name not in _OF_WORKERS}
        elif isinstance(loader, MixedLoader):
            if alias or length is not None:
                raise TypeError(f"`{'alias' if alias else 'length'}` belongs to streams and rows of packs")
            feed, options = PairFeed(loader, num_workers, options), {}
        else:
            raise TypeError(f"expected a loader of gristmill, got {type(loader).__name__}")
        super().__init__(feed, batch_size=None, collate_fn=_as_it_is, **options)
        self._loader, self._feed = loader, feed

    def __iter__(self) -> Any:
        """The batches that are left of this pass."""
        # Workers, and what PyTorch does with what they made, are those of the feed.
        return iter(self._feed) if isinstance(self._feed, PairFeed) else super().__iter__()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration goes over this pass of pairs or steps. Elsewhere passes follow each other by themselves.

        Raises:
            ConfigError: there is no such pass.
        """
        if isinstance(self._loader, MixedLoader):
            self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader after the last batch that was delivered, but for one that Lightning took ahead."""
        return self._feed.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says, with any number of workers.

        Raises:
            StateError: it is of other data or another configuration, or says nowhere to go.
        """
        self._feed.load_state_dict(state)


def _as_it_is(batch: dict[str, Any]) -> dict[str, Any]:
    return batch


# PyTorch iterates over what calls itself an iterable data set.
IterableDataset.register(RowLoader)
IterableDataset.register(MixedLoader)
