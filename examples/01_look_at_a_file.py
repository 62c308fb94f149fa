"""Open one file of games, look at a record, and make tensors of it.

python examples/01_look_at_a_file.py training.1.gz
"""

import sys

import gristmill as gm


def main(path: str) -> None:
    source = gm.open(path)
    print(source, "with", source.num_frames, "frames of", source.layout.itemsize, "bytes")
    game = source[0]
    moves = gm.chess.policy_moves()
    for ply, record in enumerate(game[:10]):
        print(ply, "played", moves[record["played_idx"]], "best", moves[record["best_idx"]], "q", record["best_q"])
    for name, tensor in gm.chess.encode(game, planes="u8").items():
        print(name, tensor.dtype, tensor.shape)


if __name__ == "__main__":
    main(sys.argv[1])
