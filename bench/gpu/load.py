"""Loads a GPU in one way, for a fixed amount of work: what company does to it is in the time.

    stream   multiplies a vector of 1 GiB: the bandwidth of the GPU's memory binds
    l2       multiplies a vector of 20 MiB: the bandwidth of the level-2 cache binds
    matmul   multiplies matrices of 8192 x 8192: the SMs bind
    small    multiplies matrices of 1024 x 1024, one after the other: launching them binds
    hold     holds --mib of memory for --seconds and computes next to nothing
"""

import argparse
import functools
import json
import time

import tensorflow as tf

STEPS = {"stream": 12_000, "l2": 16_000, "matmul": 1_600, "small": 150_000}  # about 8 s each, alone on one H200; l2 as computed
CHAIN = 32  # multiplications of l2 in a step: starting one takes longer than it does


def loop(kind, steps):
    """Returns a function that does the work on the GPU, without Python in between."""
    if kind == "stream":
        start, step = tf.ones([1 << 28]), lambda x: x * 0.999
    elif kind == "l2":
        factor = tf.random.uniform([], 0.999, 1.001)
        start, step = tf.ones([5 << 20]), lambda x: functools.reduce(lambda y, _: y * factor, range(CHAIN), x)
    else:
        side = 8192 if kind == "matmul" else 1024
        scale = tf.random.normal([side, side]) / side
        start, step = tf.random.normal([side, side]), lambda x: tf.linalg.matmul(scale, x)

    @tf.function
    def run(x):
        return tf.while_loop(lambda i, _: i < steps, lambda i, x: (i + 1, step(x)), [0, x])[1]

    return lambda: float(tf.reduce_sum(run(start)))


def hold(mib, seconds):
    with tf.device("/GPU:0"):  # made there, without a copy in the host's memory; TensorFlow counts elements in 32 bits
        kept = [tf.random.uniform([min(mib - part, 4096), 1 << 18]) for part in range(0, mib, 4096)]
    time.sleep(seconds)
    return float(kept[0][0, 0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=[*STEPS, "hold"], required=True)
    parser.add_argument("--work", type=float, default=1.0, help="of the usual steps")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    if not tf.config.list_physical_devices("GPU"):
        raise SystemExit("no GPU")

    began = time.time()
    if args.kind == "hold":
        hold(args.mib, args.seconds)
    else:
        loop(args.kind, int(STEPS[args.kind] * args.work))()
    print(json.dumps({"step": 1, "seconds": round(time.time() - began, 3)}), flush=True)


if __name__ == "__main__":
    main()
