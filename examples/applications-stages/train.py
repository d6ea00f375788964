"""Heads on the features of frozen networks of keras.applications, in two stages.

By hand it does both. In a sweep with stages `features` runs once for each network, and
each trial trains a head on its output (docs/stages.md). The data ships inside
scikit-learn. Weights come from a data set with Keras' own files, below KERAS_HOME; with
--weights=none the networks are random, which still tells the digits apart.
"""

import argparse
import os

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 128  # pixels
STAGE = os.environ.get("TRIAL_STAGE", "all")
FEATURES = os.environ.get("TRIAL_STAGE_FEATURES", ".")


def load(seed):
    images, labels = load_digits(return_X_y=True)
    images = np.repeat(np.repeat(images.reshape(-1, 8, 8, 1), SIDE // 8, axis=1), SIDE // 8, axis=2)
    images = np.repeat(images * (255.0 / 16.0), 3, axis=3).astype(np.float32)
    return train_test_split(images, labels, test_size=0.25, random_state=seed)


def extract(args, file):
    keras.utils.set_random_seed(args.seed)
    kind = getattr(keras.applications, args.base)
    base = kind(include_top=False, pooling="avg", input_shape=(SIDE, SIDE, 3), weights=None if args.weights == "none" else args.weights)
    x, x_val, y, y_val = load(args.seed)
    x, x_val = (base.predict(images, verbose=0) for images in (x, x_val))  # frozen: no training, no augmentation
    mean, scale = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-12)
    np.savez(file, x=(x - mean) / scale, x_val=(x_val - mean) / scale, y=y, y_val=y_val)


def fit(args, file):
    keras.utils.set_random_seed(args.seed)
    data = np.load(file)
    head = keras.Sequential([keras.Input(data["x"].shape[1:]), keras.layers.Dropout(args.dropout), keras.layers.Dense(10, activation="softmax")])
    head.compile(keras.optimizers.Adam(args.lr), "sparse_categorical_crossentropy", metrics=["accuracy"])
    head.fit(data["x"], data["y"], validation_data=(data["x_val"], data["y_val"]), batch_size=args.batch, epochs=args.epochs, verbose=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="MobileNetV2", help="a network of keras.applications")
    parser.add_argument("--weights", default="none", help="imagenet, or none")
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    if STAGE in ("features", "all"):
        extract(args, ("/trial/out" if STAGE == "features" else FEATURES) + "/features.npz")

    if STAGE in ("main", "all"):
        fit(args, FEATURES + "/features.npz")


if __name__ == "__main__":
    main()
