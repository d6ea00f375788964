"""Heads on the features of a frozen ResNet50, in two stages: needs nothing but TensorFlow.

By hand it does both. In a sweep with stages `features` runs once, and each trial trains a head on what
it finds there. The pictures of 224 x 224 pixels are noise over a pattern for each class, made on the GPU.
"""

import argparse
import json
import os

import keras
import numpy as np
import tensorflow as tf

STAGE = os.environ.get("TRIAL_STAGE", "all")
FEATURES = os.environ.get("TRIAL_STAGE_FEATURES", "/trial/out")
SIDE, CLASSES, BATCH = 224, 10, 128


def extract(rows, file):
    keras.utils.set_random_seed(7)
    base = keras.applications.ResNet50(include_top=False, pooling="avg", input_shape=(SIDE, SIDE, 3), weights=None)
    base.compile(jit_compile=False)  # XLA would compile for minutes
    patterns = tf.repeat(tf.repeat(tf.random.stateless_normal((CLASSES, SIDE // 8, SIDE // 8, 3), (7, 0)), 8, 1), 8, 2)
    labels = np.random.default_rng(7).integers(0, CLASSES, rows)

    def pictures(at):
        return tf.gather(patterns, labels[at:at + BATCH]) + 4 * tf.random.stateless_normal((len(labels[at:at + BATCH]), SIDE, SIDE, 3), (7, at))

    x = np.concatenate([base.predict_on_batch(pictures(at)) for at in range(0, rows, BATCH)])
    np.savez(file, x=(x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12), y=labels)


def fit(args, file):
    keras.utils.set_random_seed(7)
    data = np.load(file)
    x, y, cut = data["x"], data["y"], len(data["y"]) * 3 // 4
    head = keras.Sequential([keras.Input(x.shape[1:]), keras.layers.Dropout(args.dropout), keras.layers.Dense(CLASSES, activation="softmax")])
    head.compile(keras.optimizers.Adam(args.lr), "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    seen = head.fit(x[:cut], y[:cut], validation_data=(x[cut:], y[cut:]), batch_size=256, epochs=args.epochs, verbose=0)
    for epoch, value in enumerate(seen.history["val_accuracy"]):
        print(json.dumps({"epoch": epoch + 1, "val_accuracy": value}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    if STAGE in ("features", "all"):
        extract(args.rows, ("/trial/out" if STAGE == "features" else FEATURES) + "/features.npz")

    if STAGE in ("main", "all"):
        fit(args, FEATURES + "/features.npz")


if __name__ == "__main__":
    main()
