"""Data sets that LeRobot itself wrote: version 2.1 by lerobot 0.3.3, version 3.0 by 0.4.4; and ways to damage copies.

`python tests/made/lerobot_sets.py FOLDER` writes such a one where lerobot is installed; `images/` of it, which LeRobot
leaves behind, is not in the archives.
"""

import json
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).resolve().parents[1] / "data"

#: Steps of each episode; the second was not done at its end.
LENGTHS = [5, 7, 4]
TASKS = ["pick", "pick", "place"]
FPS = 10
TOP, WRIST = "observation.images.top", "observation.images.wrist"

VERSIONS = ["v2.1", "v3.0"]


def step(episode: int, t: int) -> dict[str, Any]:
    """What was recorded in a step; pictures of `TOP` are near these in the video."""
    last = t == LENGTHS[episode] - 1
    return {
        "observation.state": np.array([episode, t, 0.5], np.float32),
        TOP: np.full((48, 64, 3), 20 * episode + 10 * t, np.uint8),
        WRIST: np.full((24, 32, 3), (episode, t, 200), np.uint8),
        "action": np.array([t, -t], np.float32),
        "next.reward": np.array([t / 10], np.float32),
        "next.done": np.array([last and episode != 1]),
        "next.success": np.array([last and episode == 0]),
        "grid": np.arange(4, dtype=np.float32).reshape(2, 2) + np.float32(t),
    }


def column(name: str) -> np.ndarray:
    """A feature of all steps."""
    return np.stack([step(episode, t)[name] for episode, steps in enumerate(LENGTHS) for t in range(steps)])


def unpacked(version: str, folder: Path) -> Path:
    """A copy of the data set of a version."""
    with tarfile.open(DATA / f"lerobot-{version}.tar.xz") as file:
        file.extractall(folder, filter="data")
    return folder / f"lerobot-{version}"


def steps_file(data: Path, episode: int) -> Path:
    """The Parquet file of an episode."""
    name = f"episode_{episode:06}" if data.name.endswith("v2.1") else "file-000"
    return data / "data/chunk-000" / f"{name}.parquet"


def video_file(data: Path, episode: int) -> Path:
    """The video of an episode."""
    if data.name.endswith("v2.1"):
        return data / "videos/chunk-000" / TOP / f"episode_{episode:06}.mp4"
    return data / "videos" / TOP / "chunk-000/file-000.mp4"


def say(data: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes `info.json`."""
    path = data / "meta/info.json"
    info = json.loads(path.read_text())
    change(info)
    path.write_text(json.dumps(info))


def rewrite(path: Path, change: Callable[[Any], Any]) -> None:
    """Changes the table of a Parquet file, which has the same row groups afterwards."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        table = change(file.read())
    with pq.ParquetWriter(path, table.schema) as writer:
        for size in sizes:
            writer.write_table(table.slice(0, size))
            table = table.slice(size)
        if len(table):
            writer.write_table(pa.table(table))


def put(table: Any, name: str, values: Any) -> Any:
    """A table with other values in a column."""
    return table.set_column(table.column_names.index(name), name, values)


def write_video(path: Path, frames: list[np.ndarray], times: list[float] | None = None) -> None:
    """A video of these frames, each at its time in seconds."""
    from fractions import Fraction

    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt, stream.time_base = "yuv420p", Fraction(1, 1000)
        stream.codec_context.time_base = Fraction(1, 1000)
        for i, picture in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.time_base = Fraction(1, 1000)
            frame.pts = round(1000 * (i / FPS if times is None else times[i]))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def write(folder: Path) -> None:
    """Writes the data set by lerobot."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    first = step(0, 0)
    names = {
        "observation.state": ["x", "y", "z"],
        "action": ["a", "b"],
        **{key: ["height", "width", "channels"] for key in (TOP, WRIST)},
    }
    kinds = {TOP: "video", WRIST: "image"}
    features = {
        name: {"dtype": kinds.get(name, str(value.dtype)), "shape": value.shape, "names": names.get(name)}
        for name, value in first.items()
    }
    data = LeRobotDataset.create("mine/set", fps=FPS, root=folder, features=features, robot_type="so100")
    for episode, steps in enumerate(LENGTHS):
        for t in range(steps):
            if hasattr(data, "finalize"):
                data.add_frame({**step(episode, t), "task": TASKS[episode]})
            else:
                data.add_frame(step(episode, t), task=TASKS[episode])
        data.save_episode()
    if hasattr(data, "finalize"):
        data.finalize()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
