"""XXH3-64 of at most 240 bytes, as xxHash defines it: what the oracle of docs/format/order.md hashes with."""

from __future__ import annotations

WORD, LONG = (1 << 32) - 1, (1 << 64) - 1

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


def _read(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _fold(a: int, b: int) -> int:
    return (a * b >> 64) ^ (a * b & LONG)


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & LONG


def _swapped(x: int, size: int) -> int:
    return int.from_bytes(x.to_bytes(size, "little"), "big")


def _avalanche(h: int) -> int:
    h = (h ^ h >> 37) * 0x165667919E3779F9 & LONG
    return h ^ h >> 32


def _old_avalanche(h: int) -> int:
    h = (h ^ h >> 33) * PRIMES[1] & LONG
    h = (h ^ h >> 29) * PRIMES[2] & LONG
    return h ^ h >> 32


def xxh3_64(data: bytes, seed: int = 0) -> int:
    """The hash of at most 240 bytes."""
    n = len(data)

    def mix(at: int, secret: int) -> int:
        low, high = (_read(SECRET, secret) + seed) & LONG, (_read(SECRET, secret + 8) - seed) & LONG
        return _fold(_read(data, at) ^ low, _read(data, at + 8) ^ high)

    if n == 0:
        return _old_avalanche(seed ^ _read(SECRET, 56) ^ _read(SECRET, 64))
    if n <= 3:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[-1] | n << 8
        return _old_avalanche(combined ^ ((_read(SECRET, 0, 4) ^ _read(SECRET, 4, 4)) + seed & LONG))
    if n <= 8:
        seed ^= _swapped(seed & WORD, 4) << 32
        flip = (_read(SECRET, 8) ^ _read(SECRET, 16)) - seed & LONG
        h = (_read(data, n - 4, 4) + (_read(data, 0, 4) << 32)) ^ flip
        h ^= _rotated(h, 49) ^ _rotated(h, 24)
        h = h * 0x9FB21C651E98DF25 & LONG
        h ^= (h >> 35) + n
        h = h * 0x9FB21C651E98DF25 & LONG
        return h ^ h >> 28
    if n <= 16:
        low = _read(data, 0) ^ ((_read(SECRET, 24) ^ _read(SECRET, 32)) + seed & LONG)
        high = _read(data, n - 8) ^ ((_read(SECRET, 40) ^ _read(SECRET, 48)) - seed & LONG)
        return _avalanche(n + _swapped(low, 8) + high + _fold(low, high) & LONG)
    if n <= 128:
        total = n * PRIMES[0]
        for i in range((n - 1) // 32 + 1):
            total += mix(16 * i, 32 * i) + mix(n - 16 * (i + 1), 32 * i + 16)
        return _avalanche(total & LONG)
    assert n <= 240, "longer names are not needed here"
    total = _avalanche(n * PRIMES[0] + sum(mix(16 * i, 16 * i) for i in range(8)) & LONG)
    total += sum(mix(16 * i, 16 * (i - 8) + 3) for i in range(8, n // 16)) + mix(n - 16, 136 - 17)
    return _avalanche(total & LONG)
