"""The law of KataGo's window: the numbers of its paper, where it begins, how it grows, what is no number of rows."""

from decimal import Decimal, getcontext

import pytest

import gristmill as gm

#: By decimals of 40 digits, which is another arithmetic than that of the function.
getcontext().prec = 40


def law(total: int, least: int, slope: str, power: str) -> int:
    share, exponent = Decimal(total) / least, Decimal(power)
    return int(least * (1 + Decimal(slope) * (share**exponent - 1) / exponent))


def test_the_window_is_that_of_the_paper() -> None:
    for total in (250_001, 1_000_000, 25_000_000, 241_000_000, 5_000_000_000):
        assert abs(gm.newest_rows(total) - law(total, 250_000, "0.4", "0.75")) <= 1
    assert abs(gm.newest_rows(10**6, least=1000, slope=0.5, power=0.6) - law(10**6, 1000, "0.5", "0.6")) <= 1
    assert gm.newest_rows(25_000_000) == 4_333_036


def test_it_begins_with_all_rows_and_grows_by_the_slope() -> None:
    assert [gm.newest_rows(total) for total in (0, 1, 249_999, 250_000)] == [0, 1, 249_999, 250_000]
    assert gm.newest_rows(250_100) == 250_039
    assert gm.newest_rows(10_000, least=100, slope=1, power=1) == 10_000
    assert gm.newest_rows(1100, least=100, slope=0.5, power=1) == 600
    sizes = [gm.newest_rows(total, least=100) for total in range(0, 100_000, 37)]
    assert sizes == sorted(sizes)
    assert all(size <= total for size, total in zip(sizes, range(0, 100_000, 37), strict=True))


def test_what_is_no_number_of_rows_is_refused() -> None:
    for options in ({"least": 0}, {"slope": 0}, {"slope": 1.5}, {"power": 0}, {"power": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(options))):
            gm.newest_rows(1000, **options)
    with pytest.raises(ValueError, match="total=-1"):
        gm.newest_rows(-1)
    with pytest.raises(TypeError):
        gm.newest_rows(1000.5)  # type: ignore[arg-type]
