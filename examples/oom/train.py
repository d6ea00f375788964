"""Handwritten digits with an augmented data set kept in memory, in plain Keras.

The memory a trial needs grows with --copies, about 15 MiB each, and nobody
told Berth: sweep.yaml does not mark the parameter. It is here to show what
happens then. One line of JSON per epoch goes to standard output.
"""

import argparse
import json

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 64  # images are scaled up from 8x8 to SIDE x SIDE
IMAGES = 960  # of the data set that take part


class PrintMetrics(keras.callbacks.Callback):
    """Prints each epoch's metrics as one JSON object."""

    def on_epoch_end(self, epoch, logs=None):
        metrics = {name: round(float(value), 6) for name, value in (logs or {}).items()}
        print(json.dumps({"epoch": epoch + 1, **metrics}), flush=True)


class Batches(keras.utils.PyDataset):
    """Random batches from images in memory; a fixed number of them an epoch."""

    def __init__(self, images, labels, batch, steps, seed):
        super().__init__()
        self.images, self.labels, self.batch, self.steps = images, labels, batch, steps
        self.random = np.random.default_rng(seed)

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        rows = self.random.integers(0, len(self.images), self.batch)
        return self.images[rows], self.labels[rows % len(self.labels)]


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--width", type=int, default=16, help="filters of the convolutions")
    parser.add_argument("--copies", type=int, default=1, help="augmented copies of the data set to keep")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def enlarge(images):
    return np.repeat(np.repeat(images, SIDE // 8, axis=1), SIDE // 8, axis=2)


def augment(images, copies, random):
    """Returns copies x images, each copy with noise of its own."""
    many = np.empty((copies * len(images), *images.shape[1:]), np.float32)
    for n in range(copies):
        part = many[n * len(images):(n + 1) * len(images)]
        random.standard_normal(out=part, dtype=np.float32)
        part *= 0.05
        part += images
    return many


def main():
    args = parse_args()
    keras.utils.set_random_seed(args.seed)

    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).reshape(-1, 8, 8, 1).astype(np.float32)
    x, x_val, y, y_val = train_test_split(images, labels, train_size=IMAGES, test_size=256, random_state=args.seed)

    model = keras.Sequential([
        keras.Input((SIDE, SIDE, 1)),
        keras.layers.AveragePooling2D(4),
        keras.layers.Conv2D(args.width, 3, activation="relu"),
        keras.layers.Conv2D(args.width, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(args.lr), loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    many = augment(enlarge(x), args.copies, np.random.default_rng(args.seed))
    model.fit(Batches(many, y, batch=32, steps=40, seed=args.seed), validation_data=(enlarge(x_val), y_val),
              epochs=args.epochs, verbose=0, callbacks=[PrintMetrics()])


if __name__ == "__main__":
    main()
