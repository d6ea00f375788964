"""A small Keras script of somebody who has never heard of Berth."""

import argparse

import keras
import numpy as np
from shapes import blobs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--learning-rate", type=float, default=0.01, help="step of the optimizer (100%% of it)")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=16, help="units of the hidden layer")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch-norm", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--save-dir", default="runs/last")
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    x, y = blobs(400, args.seed)
    layers = [keras.Input((2,)), keras.layers.Dense(args.hidden, activation="relu")]
    if args.batch_norm:
        layers.append(keras.layers.BatchNormalization())
    layers += [keras.layers.Dropout(args.dropout), keras.layers.Dense(2, activation="softmax")]
    model = keras.Sequential(layers)
    optimizer = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}[args.optimizer](args.learning_rate)
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, validation_split=0.25, batch_size=args.batch_size, epochs=args.epochs, verbose=2 if args.verbose else 0)
    with open(args.save_dir + "/done", "w") as file:
        file.write(str(np.mean(model.predict(x, verbose=0))))


if __name__ == "__main__":
    main()
