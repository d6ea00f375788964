"""The transfer learning of examples/digits in three stages, which trials share.

By hand it does all three. In a sweep with stages TRIAL_STAGE says which one to do: a
stage writes to /trial/out, and TRIAL_STAGE_<NAME> is the output of an earlier one.
"""

import argparse
import json
import os

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

STAGE = os.environ.get("TRIAL_STAGE", "all")


def runs(stage):
    return STAGE in (stage, "all")


def folder(stage):
    """Returns where a stage writes, or has written."""
    return "/trial/out" if STAGE == stage else os.environ.get("TRIAL_STAGE_" + stage.upper(), ".")


class PrintMetrics(keras.callbacks.Callback):
    """Prints each epoch's metrics as one JSON object."""

    def on_epoch_end(self, epoch, logs=None):
        print(json.dumps({"epoch": epoch + 1, **{name: float(value) for name, value in (logs or {}).items()}}), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of the new head")
    parser.add_argument("--batch", type=int, default=32, help="of the head")
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


def compiled(layers, optimizer):
    model = keras.Sequential(layers)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    args = parse_args()

    if runs("base"):
        keras.utils.set_random_seed(args.seed)  # in each stage: by hand they follow each other
        base = keras.Sequential([
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(args.width, 3, activation="relu"),
            keras.layers.Conv2D(args.width, 3, activation="relu"),
            keras.layers.Flatten(),
        ])
        x, _, y, _ = load(0, 4, args.seed)
        compiled([base, keras.layers.Dense(5, activation="softmax")], "adam").fit(x, y, epochs=30, verbose=0)
        base.save(folder("base") + "/base.keras")

    if runs("features"):
        base = keras.models.load_model(folder("base") + "/base.keras")
        x, x_val, y, y_val = load(5, 9, args.seed)
        np.savez(folder("features") + "/features.npz", x=base.predict(x, verbose=0), x_val=base.predict(x_val, verbose=0), y=y, y_val=y_val)

    if runs("main"):
        keras.utils.set_random_seed(args.seed)
        data = np.load(folder("features") + "/features.npz")
        optimizer = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}[args.optimizer](args.lr)
        head = compiled([keras.Input(data["x"].shape[1:]), keras.layers.Dense(5, activation="softmax")], optimizer)
        head.fit(data["x"], data["y"], validation_data=(data["x_val"], data["y_val"]), batch_size=args.batch, epochs=args.epochs,
                 verbose=0, callbacks=[PrintMetrics()])


if __name__ == "__main__":
    main()
