"""Save the state after some batches; a new loader continues with exactly the next one.

python examples/05_stop_and_resume.py [games/]
"""

import json
import os
import sys

import gristmill as gm


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=64, seed=1, watch=False)
    with gm.DataLoader(config) as loader:
        for _ in range(20):
            loader.get_next()
        saved = json.dumps(loader.state_dict())
        expected = loader.get_next()
    resumed = gm.DataLoader(config)
    resumed.load_state_dict(json.loads(saved))
    with resumed:
        found = resumed.get_next()
    same = all(found[name].tobytes() == expected[name].tobytes() for name in expected.names)
    print(len(saved), "bytes of state; batch", found.number, "is the same to the bit:", same)


if __name__ == "__main__":
    main(*sys.argv[1:])
