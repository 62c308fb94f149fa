"""Hanse sampling, the position cache and chunk anchors from dataclasses, as a trainer would set them up."""

import time
from pathlib import Path

from generated_games import frames_in, write_games

import gristmill as gm


def graph(games: Path, *, cache: int | None = None, watch: bool = False) -> gm.DataLoaderConfig:
    """One position of each game that Hanse sampling takes, through a position cache if it has a size."""
    pool = gm.ShufflingChunkPoolConfig(chunk_pool_size=50, hanse_sampling_threshold=1)
    unpacker = gm.ChunkUnpackerConfig(position_count=1)
    join, pool_inputs, frames = [], ["load"], "unpack"
    if cache is not None:
        pool.position_cache_size, pool.cachehit_output = cache, gm.QueueConfig("hits")
        unpacker.prefetch_count, unpacker.prefetch_output = 6, gm.QueueConfig("ahead")
        pool_inputs, frames = ["load", "unpack.ahead"], "both"
        join = [gm.StageConfig("both", ["unpack", "pool.hits"], join_positions=gm.JoinPositionsConfig())]
    tensors = gm.TensorGeneratorConfig(batch_size=16, tensors=["ids", "planes:bits"])
    return gm.DataLoaderConfig(
        stage=[
            gm.StageConfig("files", file_path_provider=gm.FilePathProviderConfig(games, watch=watch)),
            gm.StageConfig("load", ["files"], chunk_source_loader=gm.ChunkSourceLoaderConfig()),
            gm.StageConfig("pool", pool_inputs, shuffling_chunk_pool=pool),
            gm.StageConfig("unpack", ["pool"], chunk_unpacker=unpacker),
            *join,
            gm.StageConfig("tensors", [frames], tensor_generator=tensors),
        ],
        output=["tensors"],
        seed=5,
        index="off",
    )


def test_longer_games_come_more_often_and_a_cache_changes_nothing(tmp_path: Path) -> None:
    for number in range(10):
        write_games(tmp_path, 1, first=number + 1, plies=10 if number < 5 else 40)
    with gm.DataLoader(graph(tmp_path)) as plain, gm.DataLoader(graph(tmp_path, cache=60)) as cached:
        batches = [plain.get_next(timeout=20) for _ in range(60)]
        for batch in batches:
            assert cached.get_next(timeout=20)["planes"].tobytes() == batch["planes"].tobytes()
        frames = frames_in(plain, batches)
        short = sum(1 for frame in frames if frame // 1000 <= 5) / len(frames)
        assert 0.13 < short < 0.27, "five games of 10 plies beside five of 40: a fifth of the positions"
        rows = {stage["name"]: stage for stage in cached.metrics()["stages"]}
        counts = {count["name"]: count["total"] for count in rows["pool"]["counts"]}
        assert counts["cache_hits"] > 0
        assert counts["hanse_rejected"] > 0


def test_anchors_are_read_set_and_reset(tmp_path: Path) -> None:
    write_games(tmp_path, 6)
    loader = gm.DataLoader(graph(tmp_path, watch=True))
    assert loader.control() == {"pool": gm.ChunkAnchor("", 0)}
    assert loader.control(set_chunk_anchor="training.3.gz") == {"pool": gm.ChunkAnchor("training.3.gz", 0)}
    with loader:
        loader.get_next(timeout=20)
        assert loader.control() == {"pool": gm.ChunkAnchor("training.3.gz", 2)}
        write_games(tmp_path, 3, first=50)
        until = time.monotonic() + 20
        while loader.control()["pool"].chunks_since < 5:
            assert time.monotonic() < until
            time.sleep(0.01)
        newest = loader.control(reset_chunk_anchor=True)["pool"]
        assert newest.key.startswith("training.5")
        assert newest.chunks_since == 5
        assert loader.control() == {"pool": gm.ChunkAnchor(newest.key, 0)}
        state = loader.state_dict()
    again = gm.DataLoader(graph(tmp_path, watch=True))
    again.load_state_dict(state)
    assert again.control()["pool"].key == newest.key
