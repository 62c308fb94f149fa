"""What the sides of a split promise, of any pack: states that belong to one side, and refusals."""

from typing import Any

import pytest

import gristmill as gm

Pack = gm.Rows | gm.Games


def resumes_only_itself(side: Pack, other: Pack, **options: Any) -> None:
    """A state says which side it is of, and resumes with no other."""
    state = gm.DataLoader(side, **options).state_dict()
    gm.DataLoader(side, **options).load_state_dict(state)
    with pytest.raises(gm.StateError, match="selection"):
        gm.DataLoader(other, **options).load_state_dict(state)


def refuses_impossible_sides(pack: Pack) -> None:
    """Shares that leave nothing for training, a test side without a share, and too few or too many folds."""
    for val, test, field in ((0.5, 0.5, "test"), (0.5, 1.0, "test"), (-0.1, 0.1, "val"), (0.1, 1e-9, "test")):
        with pytest.raises(gm.ConfigError) as caught:
            pack.split(val, test=test)
        assert caught.value.field == field
    with pytest.raises(TypeError, match="test side"):
        pack.split(val_where="id < 3", test=0.1)  # type: ignore[call-overload]
    for count in (1, 1001, 400):
        with pytest.raises(gm.ConfigError):
            pack.folds(count)
