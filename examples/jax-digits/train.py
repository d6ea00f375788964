"""A multilayer perceptron on handwritten digits in plain JAX, with a training loop of its own."""

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FLAGS = flags.FLAGS
flags.DEFINE_float("learning_rate", 0.1, "Step size.", lower_bound=0.0)
flags.DEFINE_integer("batch_size", 64, "Examples a step.")
flags.DEFINE_integer("width", 64, "Units of the hidden layer.")
flags.DEFINE_integer("num_epochs", 8, "Passes over the data.")
flags.DEFINE_integer("seed", 7, "Random seed.")
flags.DEFINE_string("workdir", "/trial/out", "Where parameters are stored.")


def scores(params, x):
    (w1, b1), (w2, b2) = params
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def loss(params, x, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(params, x)), y[:, None], 1))


@jax.jit
def step(params, x, y, rate):
    return jax.tree_util.tree_map(lambda p, g: p - rate * g, params, jax.grad(loss)(params, x, y))


@jax.jit
def accuracy(params, x, y):
    return jnp.mean(jnp.argmax(scores(params, x), 1) == y)


def main(argv):
    del argv
    random = np.random.default_rng(FLAGS.seed)
    x, y = load_digits(return_X_y=True)
    x, x_val, y, y_val = train_test_split((x / 16).astype(np.float32), y, test_size=0.25, random_state=FLAGS.seed)
    sizes = [(64, FLAGS.width), (FLAGS.width, 10)]
    params = [(random.normal(0, n**-0.5, (n, m)).astype(np.float32), np.zeros(m, np.float32)) for n, m in sizes]

    for epoch in range(1, FLAGS.num_epochs + 1):
        order = random.permutation(len(x))
        for first in range(0, len(x) - FLAGS.batch_size + 1, FLAGS.batch_size):
            rows = order[first:first + FLAGS.batch_size]
            params = step(params, x[rows], y[rows], FLAGS.learning_rate)
        print(f"epoch {epoch}: val_loss={loss(params, x_val, y_val):.4f}, val_accuracy={accuracy(params, x_val, y_val):.4f}", flush=True)

    (w1, b1), (w2, b2) = params
    np.savez(f"{FLAGS.workdir}/params.npz", w1=w1, b1=b1, w2=w2, b2=b2)


if __name__ == "__main__":
    app.run(main)
