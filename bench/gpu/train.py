"""A small transfer-learning job for measurements on a GPU: needs nothing but TensorFlow.

A convolutional network learns to tell noisy images of 28 x 28 pixels apart: one
epoch of a new head on a frozen base, then all layers. One line of JSON per epoch
goes to standard output.
"""

import argparse
import json
import os
import sys

if "--default-mode" in sys.argv:  # TensorFlow's own: it takes nearly the whole GPU
    os.environ.pop("TF_FORCE_GPU_ALLOW_GROWTH", None)

import keras
import numpy as np


class PrintMetrics(keras.callbacks.Callback):
    """Prints each epoch's metrics as one JSON object."""

    def __init__(self, epoch):
        super().__init__()
        self.first = epoch

    def on_epoch_end(self, epoch, logs=None):
        metrics = {name: round(float(value), 6) for name, value in (logs or {}).items()}
        print(json.dumps({"epoch": self.first + epoch + 1, **metrics}), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=1e-4, help="learning rate once all layers learn")
    parser.add_argument("--filters", type=int, default=32, help="of the first convolution; the second has twice as many")
    parser.add_argument("--dense", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=3, help="after the one of the head")
    parser.add_argument("--rows", type=int, default=16000, help="of training data; an eighth as many validate")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--default-mode", action="store_true", help="do without Berth's growth mode")
    return parser.parse_args()


def images(rows, seed):
    """Returns rows noisy pictures of five classes, each shifted by up to two pixels."""
    classes = np.random.default_rng(7).standard_normal((5, 7, 7)).repeat(4, 1).repeat(4, 2).astype("float32")
    random = np.random.default_rng(seed)
    labels = random.integers(0, 5, rows)
    noisy = classes[labels] + random.standard_normal((rows, 28, 28), dtype=np.float32) * 2.5
    shifts = random.integers(-2, 3, rows)
    return np.stack([np.roll(image, shift, 1) for image, shift in zip(noisy, shifts)])[..., None], labels


def fit(model, lr, args, train, validation, epochs, first):
    model.compile(keras.optimizers.Adam(lr), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"], jit_compile=False)
    model.fit(*train, batch_size=args.batch, epochs=epochs, validation_data=validation, verbose=0,
              callbacks=[PrintMetrics(first)])


def main():
    args = parse_args()
    keras.utils.set_random_seed(args.seed)
    train, validation = images(args.rows, args.seed), images(max(args.rows // 8, 64), args.seed + 1)

    base = keras.Sequential([
        keras.Input((28, 28, 1)),
        keras.layers.Conv2D(args.filters, 3, activation="relu"),
        keras.layers.Conv2D(2 * args.filters, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(args.dense, activation="relu"),
    ])
    model = keras.Sequential([base, keras.layers.Dense(5)])

    base.trainable = False
    fit(model, 1e-3, args, train, validation, 1, 0)
    base.trainable = True
    fit(model, args.lr, args, train, validation, args.epochs, 1)


if __name__ == "__main__":
    main()
