"""Learn the moves of 2048 with Keras 3: its own training step over a feed, and a state that resumes.

pip install gristmill[jax] keras
python examples/15_train_with_keras.py [logs/]
"""

import os
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras

import gristmill as gm
import gristmill.jax

RANKS, MOVES, EPOCHS = 18, 4, 8


def main(directory: str = "example-logs") -> None:
    if not os.path.isdir(directory):
        gm.generate("2048", directory, games=12, seed=1, moves_max=200)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Embedding(RANKS, 16),
            keras.layers.Flatten(),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(MOVES, activation="softmax"),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")
    losses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "2048-pack")
        gm.pack(directory, pack)
        encoder = gm.g2048.HardMove(rotate=True, flip=True, dtype="i32")

        def loader() -> gm.DataLoader:
            return gm.DataLoader(gm.open(pack), encoder=encoder, batch_size=128, seed=1, epochs=EPOCHS, joined=True)

        with gm.jax.feed(loader()) as feed:
            for number, batch in enumerate(feed):
                losses.append(float(model.train_on_batch(batch["tokens"], batch["move_targets"])))
                model.reset_metrics()
                if number == 20:
                    state = feed.state_dict()
                if number % 40 == 0:
                    print(number, losses[-1])
        resumed = loader()
        resumed.load_state_dict(state)
        with gm.jax.feed(resumed) as feed:
            print("resumes with", sum(1 for _ in feed), "batches to go, as expected:", len(losses) - 21)
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
