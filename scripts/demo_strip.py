"""Writes two short demonstrations of a ball that crosses a field, as an .npz: something to draw. Needs no package."""

import sys
import zipfile
from collections.abc import Iterable

SIDE, STEPS, EPISODES = 24, 12, 2


def npy(dtype: str, shape: tuple[int, ...], values: Iterable[int]) -> bytes:
    """An array as NumPy stores it."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(values)


def picture(step: int, episode: int) -> list[int]:
    """Three channels: a blue field, and a ball that moves a little each step."""
    x, y = 3 + step * 3 // 2, 5 + (step * (1 + episode)) % 14
    ball = [[(i - x) ** 2 + (j - y) ** 2 <= 6 for i in range(SIDE)] for j in range(SIDE)]
    colours = ((235, 30), (120, 60), (40, 140))
    return [high if inside else low for high, low in colours for row in ball for inside in row]


def main(path: str) -> None:
    """Writes the file."""
    steps = [(step, episode) for episode in range(EPISODES) for step in range(STEPS)]
    total, shape = len(steps), (len(steps), 3, SIDE, SIDE)
    arrays = {
        "obs": npy("|u1", shape, [value for step, episode in steps for value in picture(step, episode)]),
        "next_obs": npy("|u1", shape, [value for step, episode in steps for value in picture(step + 1, episode)]),
        "acts": npy("|u1", (total,), [step % 3 for step, _ in steps]),
        "dones": npy("|b1", (total,), [step + 1 == STEPS for step, _ in steps]),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, stored in arrays.items():
            archive.writestr(f"{name}.npy", stored)


if __name__ == "__main__":
    main(sys.argv[1])
