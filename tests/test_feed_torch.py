"""Feeds of PyTorch tensors: the values of the loader, in loaders of PyTorch, resumed where a step stood."""

from collections.abc import Callable
from typing import Any

import pytest
from feeds import KINDS, maker, plain

import gristmill as gm

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
adapter: Any = pytest.importorskip("gristmill.torch")
NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="skipped: PyTorch sees no GPU here")
GPU = pytest.param("cuda", marks=NO_GPU)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    return maker(tmp_path_factory.mktemp("data"))


def values(batch: dict[str, Any]) -> dict[str, Any]:
    """Values by name, of lists as well; the two tensors of ids that pairs have stay two."""
    lists = {name: value for name, value in batch.items() if isinstance(value, list)}
    return plain({name: value.cpu() for name, value in batch.items() if isinstance(value, torch.Tensor)}) | {
        name: [plain({"": item.cpu()})[""] if isinstance(item, torch.Tensor) else item for item in value]
        for name, value in lists.items()
    }


@pytest.mark.parametrize("device", ["cpu", GPU])
@pytest.mark.parametrize("kind", KINDS)
def test_tensors_are_those_of_the_loader_and_resume(make: Callable[[str], Any], kind: str, device: str) -> None:
    expected = [values(batch) for batch in adapter.batches(make(kind))]
    fed, found = adapter.feed(make(kind), device=device), []
    for batch in fed:
        assert all(value.device.type == device for value in batch.values() if isinstance(value, torch.Tensor))
        found.append(values(batch))
        if len(found) == 2:
            state = fed.state_dict()
    # `batches` goes on after the pass that the feed ends with.
    assert found == expected[: len(found)]
    assert len(found) == len(list(adapter.feed(make(kind), device="cpu")))
    again = adapter.feed(make(kind), device=device, ahead=3)
    again.load_state_dict(state)
    assert [values(batch) for batch in again] == found[2:]


def test_a_loader_of_pytorch_takes_a_feed(make: Callable[[str], Any]) -> None:
    expected = [values(batch) for batch in adapter.feed(make("games"))]
    loader = torch.utils.data.DataLoader(adapter.feed(make("games")), batch_size=None, collate_fn=lambda batch: batch)
    assert [values(batch) for batch in loader] == expected


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind", ["stream", "games", "steps"])
def test_a_loader_with_a_state_resumes_after_every_batch(make: Callable[[str], Any], kind: str) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="skipped: torchdata is not installed")

    def loader() -> Any:
        return stateful.StatefulDataLoader(adapter.feed(make(kind)), batch_size=None, collate_fn=lambda batch: batch)

    first, expected, states = loader(), [], []
    for batch in first:
        expected.append(values(batch))
        states.append(first.state_dict())
    for given, state in enumerate(states[:-1], 1):
        second = loader()
        second.load_state_dict(state)
        assert [values(batch) for batch in second] == expected[given:]


def test_devices_that_are_not_there_are_refused(make: Callable[[str], Any]) -> None:
    no_devices: list[Any] = [1.5, [], True]
    for wrong in no_devices:
        with pytest.raises(TypeError, match=r"expected a torch\.device, its name, or its number"):
            adapter.feed(make("games"), device=wrong)
    for missing in ("gpu", "cuda:99"):
        with pytest.raises(gm.ConfigError, match=f"device='{missing}'") as refused:
            adapter.feed(make("games"), device=missing)
        assert refused.value.field == "device"
    assert next(adapter.feed(make("games"), device="meta"))["values"].device.type == "meta"
