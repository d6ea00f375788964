"""Computes on a GPU beside others, until something ends it.

    sums     multiplies matrices of small whole numbers, 2048 x 2048, and checks the sum of each product
    keras    trains a convolutional network by model.fit
    tf, torch, jax, cupy
             queue chains of 20 products of 8192 x 8192, without waiting between them

One line of JSON follows each chain or epoch; sums writes one in a hundred checks and ends
with 1 at the first wrong one. --grow takes so many MiB of the host's memory after each chain;
--rounds ends the program well after so many.
"""

import argparse
import importlib
import json

import numpy as np

SIDE, CHAIN = 8192, 20


def sums():
    import tensorflow as tf

    random = np.random.default_rng(7)
    a, b = (random.integers(-2, 3, (2048, 2048)).astype("float32") for _ in range(2))
    expected = int(a.sum(0, dtype="float64") @ b.sum(1, dtype="float64"))
    a, b = tf.constant(a), tf.constant(b)  # products of such numbers are exact in any of the GPU's precisions

    while True:
        for _ in range(100):
            got = int(tf.reduce_sum(tf.cast(a @ b, tf.int64)))
            if got != expected:
                raise SystemExit(f"the sum is {got}, not {expected}")
        yield


def chains(kind):
    """Multiplies x by a random matrix that keeps its size."""
    scale = (np.random.default_rng(7).standard_normal((SIDE, SIDE), dtype="float32") / SIDE**0.5)
    if kind == "tf":
        import tensorflow as tf

        to_gpu, wait = tf.constant, lambda x: x[0, 0].numpy()
    elif kind == "torch":
        import torch

        to_gpu, wait = lambda x: torch.from_numpy(x).cuda(), lambda x: x[0, 0].item()
    elif kind == "jax":
        import jax

        to_gpu, wait = jax.device_put, lambda x: x.block_until_ready()
    else:
        library = importlib.import_module(kind)
        to_gpu, wait = library.asarray, lambda x: x[0, 0].item()

    scale = to_gpu(scale)
    x = scale
    while True:
        for _ in range(CHAIN):
            x = scale @ x
        wait(x)
        yield


def fit():
    import keras

    model = keras.Sequential([keras.Input((64, 64, 32)), *(keras.layers.Conv2D(128, 3, activation="relu") for _ in range(4)),
                              keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(5)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
    random = np.random.default_rng(7)
    images, labels = random.standard_normal((512, 64, 64, 32), dtype="float32"), random.integers(0, 5, 512)
    while True:
        model.fit(images, labels, batch_size=128, epochs=1, verbose=0)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=["sums", "keras", "tf", "torch", "jax", "cupy"], required=True)
    parser.add_argument("--grow", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    kept = []
    for n, _ in enumerate({"sums": sums, "keras": fit}.get(args.kind, lambda: chains(args.kind))(), 1):
        print(json.dumps({"step": n, "rounds": n}), flush=True)
        if args.grow:
            kept.append(np.ones(args.grow << 17))
        if n == args.rounds:
            break


if __name__ == "__main__":
    main()
