"""Open one file of games, look at a record, and make tensors of it.

python examples/01_look_at_a_file.py [training.1.gz]
"""

import sys
from pathlib import Path

import gristmill as gm


def main(path: str = "") -> None:
    if not path:
        if not Path("example-games").is_dir():
            gm.generate("chess", "example-games", games=100, seed=1)
        path = str(min(Path("example-games").glob("*.gz")))
    source = gm.open(path, expect=gm.Source)
    print(source, "with", source.num_frames, "frames of", source.layout.itemsize, "bytes")
    game = source[0]
    for ply, (record, (played, best)) in enumerate(zip(game[:10], gm.chess.moves(game[:10]), strict=True)):
        print(ply, "played", played, "best", best, "q", record["best_q"])
    for name, tensor in gm.chess.encode(game, planes="u8").items():
        print(name, tensor.dtype, tensor.shape)
    Path("example-board.svg").write_text(gm.chess.board(game[10]))
    print("the position after ten plies is drawn in example-board.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
