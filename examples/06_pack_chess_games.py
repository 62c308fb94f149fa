"""One pack of many games: any position at once, games selected by SQL, exact epochs in a shuffled order.

python examples/06_pack_chess_games.py [games/]
"""

import os
import sys
import tempfile

import gristmill as gm


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "chess-pack")
        gm.pack(directory, pack)
        games = gm.open(pack, expect=gm.Games)
        print(games)
        record = games.take(-1)
        print("the last position of all:", gm.chess.fens(record.reshape(1))[0])
        decided = games.where("result != 0")
        train, val = decided.split(0.2, seed=1)
        print(len(decided.games), "decided games:", len(train.games), "to train on,", len(val.games), "to validate on")
        loader = gm.DataLoader(train, batch_size=512, seed=1)
        rows = sum(batch.rows for batch in loader)
        print("an epoch has each of", rows, "positions once; expected", train.num_frames)


if __name__ == "__main__":
    main(*sys.argv[1:])
