"""A network of keras.applications, trained from nothing on handwritten digits.

weights=None: no file of weights is downloaded. The script prints nothing for
Berth, which takes what Keras reports of each epoch. The data ships inside
scikit-learn.
"""

import argparse

import keras
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 32  # the smallest image that MobileNet takes


def load(seed):
    images, labels = load_digits(return_X_y=True)
    images = (images / 8.0 - 1.0).reshape(-1, 8, 8, 1).astype(np.float32)
    images = np.repeat(np.repeat(images, SIDE // 8, axis=1), SIDE // 8, axis=2)
    return train_test_split(np.repeat(images, 3, axis=3), labels, test_size=0.2, random_state=seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--alpha", type=float, default=0.25, help="width of the network")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    x, x_val, y, y_val = load(args.seed)

    model = keras.applications.MobileNet((SIDE, SIDE, 3), alpha=args.alpha, dropout=0.0, weights=None, classes=10)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.9  # the default 0.99 is for far more steps than these
    model.compile(keras.optimizers.Adam(args.lr), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch_size=args.batch, epochs=args.epochs, validation_data=(x_val, y_val), verbose=2)
    model.save("/trial/out/model.keras")


if __name__ == "__main__":
    main()
