"""Train a small convolutional network on handwritten digits.

    python train.py --epochs 20 --learning-rate 0.002
"""
import argparse
import os

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def get_args():
    parser = argparse.ArgumentParser(description="digits classifier")
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--filters", type=int, default=16)
    parser.add_argument("--dropout", type=float, default=0.25)
    parser.add_argument("--optimizer", default="adam", choices=["adam", "rmsprop", "sgd"])
    parser.add_argument("--augment", action="store_true", help="shift images by up to a pixel")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output", default="model.keras", help="where to save the model")
    return parser.parse_args()


def load_data(seed):
    digits = load_digits()
    x = digits.images.astype("float32")[..., np.newaxis] / 16.0
    y = digits.target
    return train_test_split(x, y, test_size=0.2, random_state=seed, stratify=y)


def build_model(args):
    inputs = keras.Input(shape=(8, 8, 1))
    x = inputs
    if args.augment:
        x = layers.RandomTranslation(0.12, 0.12)(x)
    x = layers.Conv2D(args.filters, 3, padding="same", activation="relu")(x)
    x = layers.Conv2D(args.filters * 2, 3, activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Flatten()(x)
    x = layers.Dropout(args.dropout)(x)
    outputs = layers.Dense(10, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main():
    args = get_args()
    keras.utils.set_random_seed(args.seed)

    x_train, x_test, y_train, y_test = load_data(args.seed)
    print("train:", x_train.shape, "test:", x_test.shape)

    model = build_model(args)
    model.summary()

    optimizer = keras.optimizers.get(args.optimizer)
    optimizer.learning_rate = args.learning_rate
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, batch_size=args.batch_size, epochs=args.epochs, validation_data=(x_test, y_test))

    loss, accuracy = model.evaluate(x_test, y_test)
    print("Test loss:", loss)
    print("Test accuracy:", accuracy)

    folder = os.path.dirname(args.output)
    if folder:
        os.makedirs(folder, exist_ok=True)
    model.save(args.output)
    print("saved to", args.output)


if __name__ == "__main__":
    main()
