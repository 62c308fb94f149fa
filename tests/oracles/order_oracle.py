"""Which row stands where in batch k, by docs/format/order.md, split.md and lanes.md alone: sequential, slow, obvious.

Nothing here uses gristmill. What stands here and on no page would be a fault of the pages.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, nextafter, trunc
from typing import Any

import numpy as np
from xxh3_by_hand import LONG, WORD, xxh3_64

# order.md: keys and draws, permutations.


def u64(number: int) -> bytes:
    return number.to_bytes(8, "little")


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Four words of Philox4x32-10."""
    for _ in range(10):
        p, q = counter[0] * 0xD2511F53, counter[2] * 0xCD9E8D57
        counter = [q >> 32 ^ counter[1] ^ key[0], q & WORD, p >> 32 ^ counter[3] ^ key[1], p & WORD]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return counter


class Draws:
    """The words of `key.at(n)`, and what is drawn from them."""

    def __init__(self, key: int, n: int) -> None:
        blocks = (philox([n & WORD, n >> 32, b & WORD, b >> 32], [key & WORD, key >> 32]) for b in itertools.count())
        self.words = itertools.chain.from_iterable(blocks)

    def bits(self) -> int:
        return next(self.words) + (next(self.words) << 32)

    def below(self, m: int) -> int:
        product = self.bits() * m
        while product & LONG < (2**64 - m) % m:
            product = self.bits() * m
        return product >> 64

    def unit(self) -> float:
        return (self.bits() >> 11) * 2.0**-53

    def choice(self, weights: Sequence[float]) -> int | None:
        positive = [i for i, weight in enumerate(weights) if weight > 0]
        left = self.unit() * sum(weights[i] for i in positive)
        for i in positive:
            if left < weights[i]:
                return i
            left -= weights[i]
        return positive[-1] if positive else None


@dataclass(frozen=True)
class Key:
    """A key of 64 bits."""

    value: int

    def of(self, name: str, number: int) -> Key:
        return Key(xxh3_64(u64(self.value) + u64(number) + name.encode()))

    def at(self, n: int) -> Draws:
        return Draws(self.value, n)


def key_of(seed: int, domain: str) -> Key:
    return Key(xxh3_64(u64(seed) + domain.encode()))


def stage_key(seed: int, stage: str, lanes: int, lane: int) -> Key:
    key = key_of(seed, stage)
    return key.of("lane", lane) if lanes > 1 else key


class Perm:
    """A permutation of the numbers below n."""

    def __init__(self, key: Key, n: int) -> None:
        draws = key.at(n)
        self.n, self.half = n, max(((n - 1).bit_length() + 1) // 2, 1)
        self.keys = [draws.bits() for _ in range(8)]

    def __call__(self, x: int) -> int:
        while True:
            for k in self.keys:
                left, right = x >> self.half, x & (1 << self.half) - 1
                m = (right ^ k) * 0x9E3779B97F4A7C15 & LONG
                m = (m ^ m >> 32) * 0xD6E8FEB86659FD93 & LONG
                x = (right << self.half) + ((left ^ m >> 29) & (1 << self.half) - 1)
            if x < self.n:
                return x


# order.md: rows of a pack.


def epoch_order(seed: int, n: int, epoch: int, shuffle: str | tuple[int, int]) -> list[int]:
    """The numbers 0 to n - 1 in the order of an epoch; `shuffle` is off, rows, or rows and blocks of Blocks."""
    if shuffle == "off":
        return list(range(n))
    key = key_of(seed, "gather").of("epoch", epoch)
    if shuffle == "rows":
        perm = Perm(key, n)
        return [perm(place) for place in range(n)]
    assert isinstance(shuffle, tuple)
    size, together = min(shuffle[0], n), shuffle[1]
    blocks = [list(range(start, min(start + size, n))) for start in range(0, n, size)]
    order = Perm(key, len(blocks))
    dealt = [blocks[order(b)] for b in range(len(blocks))]
    found = []
    for group, first in enumerate(range(0, len(dealt), together)):
        members = dealt[first : first + together]
        listed = [row for block in members if len(block) == size for row in block]
        listed += [row for block in members if len(block) < size for row in block]
        perm = Perm(key.of("group", group), len(listed))
        found += [listed[perm(place)] for place in range(len(listed))]
    return found


@dataclass
class Rows:
    """Rows of a pack: what is selected, and how they come."""

    seed: int
    selected: list[int]
    batch: int
    shuffle: str | tuple[int, int] = "rows"
    epochs: int = 1
    rank: int = 0
    world: int = 1

    def positions(self, k: int) -> list[int]:
        end = self.epochs * len(self.selected)
        positions = [k * self.batch + i * self.world + self.rank for i in range(self.batch // self.world)]
        return [p for p in positions if p < end]

    def rows(self, k: int) -> list[tuple[int, int]]:
        """The rows of batch k, each with its epoch."""
        n = len(self.selected)
        orders = {e: epoch_order(self.seed, n, e, self.shuffle) for e in {p // n for p in self.positions(k)}}
        return [(self.selected[orders[p // n][p % n]], p // n) for p in self.positions(k)]

    def bits(self, row: int, epoch: int) -> int:
        return key_of(self.seed, "augment").of("epoch", epoch).at(row).bits()


def turns_and_mirror(bits: int, rotate: str, flip: str) -> tuple[int, int]:
    low, high = bits & WORD, bits >> 32
    turns = {"off": 0, "any": low * 4 >> 32, "changed": 1 + (low * 3 >> 32)}[rotate]
    mirror = {"off": 0, "any": high * 3 >> 32, "changed": 1 + (high * 2 >> 32)}[flip]
    return turns, mirror


def whole_windows(selected: Sequence[int], games: Sequence[range], distances: Sequence[int]) -> list[int]:
    """The selected rows all of whose steps are in the game."""
    game_of = {row: game for game in games for row in game}
    return [row for row in selected if all(row + d in game_of[row] for d in distances)]


def trajectories(
    selected: Sequence[int], games: Sequence[range], length: int, *, split: bool = False, full: bool = False
) -> list[int]:
    chosen = set(selected)
    starts = [list(game)[::length] for game in games if chosen & set(game)]
    ends = {row: game.stop for game in games for row in game}
    found = [start for game in starts for start in (game if split else game[:1])]
    return [start for start in found if not full or start + length <= ends[start]]


def total(weights: Sequence[Any]) -> float:
    """Weights added up in order, in single precision."""
    found = np.float32(0)
    for weight in weights:
        found = np.float32(found + np.float32(weight))
    return float(found)


def chance(form: str, gamma: float, weight: float, largest: float, threshold: int | None) -> float:
    if form == "length":
        assert threshold
        share = min(1.0, weight / threshold)
    else:
        share = weight / largest if largest > 0 else 1.0
    return share if gamma == 1 else share**gamma


@dataclass
class Weighted:
    """Rows of a pack by weight. `games` are the selected rows of each game, `weights` what each row weighs."""

    seed: int
    games: list[list[int]]
    weights: dict[int, float]
    form: str = "weight"
    threshold: int | None = None
    gamma: float = 1.0
    weighted: bool = True

    def __post_init__(self) -> None:
        self.games = [game for game in self.games if game]
        of_length = self.form == "length"
        sums = [total([1.0 if of_length else self.weights[row] for row in game]) for game in self.games]
        self.chances = [chance(self.form, self.gamma, weight, max(sums), self.threshold) for weight in sums]

    def draw(self, position: int) -> tuple[int, int]:
        """The row at a position, and its bits."""
        draws = key_of(self.seed, "weighted").at(position)
        reached = list(itertools.accumulate(self.chances))
        x = min(draws.unit() * reached[-1], nextafter(reached[-1], -inf))
        game = self.games[next(i for i, sum_ in enumerate(reached) if sum_ > x)]
        if not self.weighted:
            return game[draws.below(len(game))], draws.bits()
        weights = [self.weights[row] for row in game]
        left, found = draws.unit() * sum(weights), None
        for row, weight in zip(game, weights, strict=True):
            if weight > 0:
                found, left = row, left - weight
                if left < 0:
                    break
        return (game[draws.below(len(game))] if found is None else found), draws.bits()


# order.md: streams; split.md, lanes.md.


@dataclass
class Chunk:
    """One game: its frames, what it is called in its file, and what its frames weigh."""

    frames: int
    member: str | None = None
    weights: list[float] | None = None


@dataclass
class File:
    """A file below its directory, with its chunks in order."""

    name: str
    chunks: list[Chunk]

    @property
    def key(self) -> str:
        return self.name.rsplit("/", 1)[-1]


def natural(key: str) -> tuple[Any, ...]:
    """What sorts names whose runs of digits compare as numbers; a run of digits stands where its first digit would."""
    parts = []
    for run in re.findall(rb"\d+|\D", key.encode()):
        parts.append((0x30, int(run), 1) if run.isdigit() else (run[0], 0, 0))
    return (parts, key.encode())


def is_on_side(file: File, number: int, weights: Sequence[int], side: int, by: str) -> bool:
    member = file.chunks[number].member
    key, index = (member.rsplit("/", 1)[-1], 0) if by == "name" and member else (file.key, number)
    at = xxh3_64(key.encode() + b"\0" + u64(index)) % sum(weights)
    return sum(weights[:side]) <= at < sum(weights[: side + 1])


def lane_of(file: File, number: int, lanes: int) -> int:
    return xxh3_64(file.key.encode() + b"\0" + u64(number), 1) % lanes


def share(size: int, lanes: int, lane: int) -> int:
    return size // lanes + (lane < size % lanes)


Place = tuple[str, int, int]


@dataclass
class Source:
    """What one unpacker gives: files, a pool or whole passes over them, and what is taken of each chunk."""

    files: list[File]
    stage: str = "pool"
    pool: int | None = None
    epochs: int = 1
    shuffled: bool = False
    order: str = "natural"
    unpack: str = "unpack"
    rate: float | None = None
    count: int | None = None
    weighted: bool = False
    split: tuple[Sequence[int], int, str] | None = None
    #: Form, gamma and threshold.
    hanse: tuple[str, float, int | None] | None = None
    #: Files that come later, each before a draw.
    later: list[tuple[int, File]] = field(default_factory=list)

    def own(self, file: File, lanes: int, lane: int) -> list[tuple[File, int]]:
        numbers = range(len(file.chunks))
        if self.split is not None:
            numbers = [i for i in numbers if is_on_side(file, i, *self.split)]  # type: ignore[assignment]
        return [(file, i) for i in numbers if lanes == 1 or lane_of(file, i, lanes) == lane]

    def draws(self, seed: int, lanes: int, lane: int) -> Iterator[tuple[File, int, int]]:
        """Chunks in the order of their draws, each with its use."""
        names = [(natural(f.key) if self.order == "natural" else f.key.encode(), f.name.encode()) for f in self.files]
        files = [file for _, file in sorted(zip(names, self.files, strict=True), key=lambda pair: pair[0])]
        chunks = [chunk for file in files for chunk in self.own(file, lanes, lane)]
        key = stage_key(seed, self.stage, lanes, lane)
        if self.pool is None:
            for epoch in range(self.epochs):
                perm = Perm(key.of("epoch", epoch), len(chunks)) if self.shuffled else int
                for place in range(len(chunks)):
                    file, number = chunks[perm(place)]
                    yield file, number, epoch % 65536
            return
        size = share(self.pool, lanes, lane) if lanes > 1 else self.pool
        # Each chunk of the window has a number, so that equal ones could not be taken for each other.
        window = list(enumerate(chunks))[-size:]
        undrawn, uses, next_number = list(window), dict.fromkeys(range(len(chunks)), 0), len(chunks)
        largest, later = 0.0, list(self.later)
        for d in itertools.count():
            while later and later[0][0] <= d:
                came = list(enumerate(self.own(later.pop(0)[1], lanes, lane), next_number))
                next_number += len(came)
                uses.update((number, 0) for number, _ in came)
                window = (window + came)[-size:]
                undrawn = [one for one in undrawn + came if one in window]
            if not undrawn:
                undrawn = list(window)
            drawn = undrawn.pop(key.at(d).below(len(undrawn)))
            file, number = drawn[1]
            if self.hanse is not None:
                form, gamma, threshold = self.hanse
                chunk = file.chunks[number]
                weight = total(chunk.weights if form == "weight" and chunk.weights else [1.0] * chunk.frames)
                largest = max(largest, weight)
                odds = chance(form, gamma, weight, largest, threshold)
                if odds < 1 and key.of("accept", 0).at(d).unit() >= odds:
                    continue
            yield file, number, uses[drawn[0]] % 65536
            uses[drawn[0]] += 1

    def rows(self, seed: int, lanes: int, lane: int) -> Iterator[Place]:
        for file, number, use in self.draws(seed, lanes, lane):
            chunk = file.chunks[number]
            key = key_of(seed, self.unpack).of(file.key, number)
            for frame in self.frames(key, chunk, use):
                yield file.name, number, frame

    def frames(self, key: Key, chunk: Chunk, use: int) -> list[int]:
        n = chunk.frames
        if self.count is not None:
            count = min(self.count, n)
            sequence = weighted_sequence(key, chunk.weights or []) if self.weighted else plain_sequence(key, n)
            return list(itertools.islice(sequence, use * count, (use + 1) * count))
        assert self.rate is not None
        rate = float(np.float32(self.rate))
        return list(range(n)) if rate >= 1 else by_rate(key.at(0), n, rate, use)


def plain_sequence(key: Key, n: int) -> Iterator[int]:
    for number in itertools.count():
        perm = Perm(key.of("pass", number), n)
        yield from (perm(place) for place in range(n))


def weighted_sequence(key: Key, weights: Sequence[float]) -> Iterator[int]:
    largest = max(weights)
    for number in itertools.count():
        perm, tosses = Perm(key.of("pass", number), len(weights)), key.of("weighed", number).at(0)
        for place in range(len(weights)):
            frame = perm(place)
            if largest <= 0 or tosses.unit() < weights[frame] / largest:
                yield frame


def by_rate(draws: Draws, n: int, rate: float, use: int) -> list[int]:
    carried, wanted, passed_over, given = rate, float(use), [False] * n, []
    while True:
        whole = float(trunc((1 - carried) / rate + 1))
        left = 1 - (carried + (whole - 1) * rate)
        next_time = [False] * n
        for frame in range(n):
            if passed_over[frame]:
                continue
            turn = trunc((draws.unit() - carried) / rate + 1)
            if turn == wanted:
                given.append(frame)
            next_time[frame] = turn >= whole
        if wanted < whole:
            return given
        wanted, carried, passed_over = wanted - whole, rate - left, next_time


@dataclass
class Stream:
    """A whole stream."""

    seed: int
    sources: list[Source]
    batch: int
    weights: list[float] = field(default_factory=list)
    exhausted: str = "drop"
    join: str = "join"
    reservoir: int = 0
    sample: str = "sample"
    drain: bool = True
    lanes: int = 1
    tensors: str = "tensors"

    def joined(self, lane: int) -> Iterator[Place]:
        key = stage_key(self.seed, self.join, self.lanes, lane)
        begin = [partial(source.rows, self.seed, self.lanes, lane) for source in self.sources]
        inputs = [make() for make in begin]
        weights = list(self.weights or [1.0] * len(inputs))
        for j in itertools.count():
            while True:
                one = len(inputs) == 1
                chosen = (0 if weights[0] > 0 else None) if one else key.at(j).choice(weights)
                if chosen is None:
                    return
                row = next(inputs[chosen], None)
                if row is not None:
                    break
                if self.exhausted == "restart":
                    inputs[chosen] = begin[chosen]()
                else:
                    weights = [0.0 if i == chosen or self.exhausted == "stop" else w for i, w in enumerate(weights)]
            yield row

    def of_lane(self, lane: int) -> Iterator[Place]:
        size = share(self.reservoir, self.lanes, lane)
        if not size:
            yield from self.joined(lane)
            return
        key, d = stage_key(self.seed, self.sample, self.lanes, lane), 0
        held: list[Place] = []
        for row in self.joined(lane):
            if len(held) < size:
                held.append(row)
                continue
            at = key.at(d).below(size)
            d += 1
            yield held[at]
            held[at] = row
        while self.drain and held:
            at = key.at(d).below(len(held))
            d += 1
            yield held[at]
            held[at] = held[-1]
            held.pop()

    def rows(self) -> Iterator[Place]:
        """All rows, over all lanes and ranks."""
        lanes = [self.of_lane(lane) for lane in range(self.lanes)]
        for g in itertools.count():
            row = next(lanes[g % self.lanes], None)
            if row is None:
                return
            yield row

    def batches(self) -> Iterator[list[Place]]:
        rows = self.rows()
        while batch := list(itertools.islice(rows, self.batch)):
            yield batch

    def bits(self, g: int) -> int:
        return key_of(self.seed, self.tensors).at(g).bits()
