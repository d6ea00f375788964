"""Transfer learning on scikit-learn's handwritten digits, in plain Keras.

A small convolutional network learns the digits 0-4; its layers are frozen and
a new head learns 5-9. One line of JSON per epoch goes to standard output. The
data ships inside scikit-learn, so nothing is downloaded.
"""

import argparse
import json

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class PrintMetrics(keras.callbacks.Callback):
    """Prints each epoch's metrics as one JSON object."""

    def on_epoch_end(self, epoch, logs=None):
        metrics = {name: round(float(value), 6) for name, value in (logs or {}).items()}
        print(json.dumps({"epoch": epoch + 1, **metrics}), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of the new head")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=32, help="filters of the convolutions")
    parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of the new head")
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


def load(low, high, seed):
    """Returns train and validation images of the digits low..high."""
    images, labels = load_digits(return_X_y=True)
    keep = (labels >= low) & (labels <= high)
    images = (images[keep] / 16.0).reshape(-1, 8, 8, 1).astype(np.float32)
    return train_test_split(images, labels[keep] - low, test_size=0.25, random_state=seed)


def compiled(model, optimizer):
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    args = parse_args()
    keras.utils.set_random_seed(args.seed)

    base = keras.Sequential([
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(args.width, 3, activation="relu"),
        keras.layers.Conv2D(args.width, 3, activation="relu"),
        keras.layers.Flatten(),
    ])

    x, x_val, y, y_val = load(0, 4, args.seed)
    pretrained = compiled(keras.Sequential([base, keras.layers.Dense(5, activation="softmax")]), "adam")
    pretrained.fit(x, y, batch_size=args.batch, epochs=3, verbose=0)

    base.trainable = False
    x, x_val, y, y_val = load(5, 9, args.seed)
    optimizer = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}[args.optimizer](args.lr)
    model = compiled(keras.Sequential([base, keras.layers.Dense(5, activation="softmax")]), optimizer)
    model.fit(x, y, validation_data=(x_val, y_val), batch_size=args.batch, epochs=args.epochs,
              verbose=0, callbacks=[PrintMetrics()])


if __name__ == "__main__":
    main()
