"""Fits a noisy wave with a multilayer perceptron in plain JAX."""
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS

flags.DEFINE_float("learning_rate", 0.01, "Step size of gradient descent.", lower_bound=0.0)
flags.DEFINE_float("momentum", 0.9, "Momentum.")
flags.DEFINE_integer("batch_size", 64, "Examples per step.")
flags.DEFINE_integer("width", 64, "Width of the hidden layers.")
flags.DEFINE_integer("num_layers", 2, "Hidden layers.")
flags.DEFINE_enum("activation", "tanh", ["tanh", "relu"], "Nonlinearity.")
flags.DEFINE_integer("num_epochs", 30, "Passes over the training data.")
flags.DEFINE_integer("seed", 0, "Random seed.")
flags.DEFINE_string("model_dir", "/tmp/waves", "Where parameters go.")


def init_params(key, sizes):
    params = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (n_in, n_out)) * jnp.sqrt(1.0 / n_in), jnp.zeros(n_out)))
    return params


def predict(params, x, activation):
    act = jnp.tanh if activation == "tanh" else jax.nn.relu
    for w, b in params[:-1]:
        x = act(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def make_data(seed, n=1000):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 1)).astype(np.float32)
    y = np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(n).astype(np.float32)
    return (x[: n * 4 // 5], y[: n * 4 // 5]), (x[n * 4 // 5 :], y[n * 4 // 5 :])


def main(argv):
    del argv
    activation = FLAGS.activation

    def loss_fn(params, x, y):
        return jnp.mean((predict(params, x, activation) - y) ** 2)

    @jax.jit
    def step(params, velocity, x, y):
        grads = jax.grad(loss_fn)(params, x, y)
        velocity = jax.tree_util.tree_map(lambda v, g: FLAGS.momentum * v - FLAGS.learning_rate * g, velocity, grads)
        return jax.tree_util.tree_map(jnp.add, params, velocity), velocity

    (x, y), (x_val, y_val) = make_data(FLAGS.seed)
    params = init_params(jax.random.PRNGKey(FLAGS.seed), [1] + [FLAGS.width] * FLAGS.num_layers + [1])
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    shuffle = np.random.default_rng(FLAGS.seed)

    print("devices:", jax.devices())
    for epoch in range(FLAGS.num_epochs):
        order = shuffle.permutation(len(x))
        for start in range(0, len(x) - FLAGS.batch_size + 1, FLAGS.batch_size):
            rows = order[start : start + FLAGS.batch_size]
            params, velocity = step(params, velocity, x[rows], y[rows])
        if epoch % 5 == 4:
            train, val = loss_fn(params, x, y), loss_fn(params, x_val, y_val)
            print("Epoch %3d, train loss: %.4f, validation loss: %.4f" % (epoch + 1, train, val), flush=True)

    out = Path(FLAGS.model_dir)
    out.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for i, (w, b) in enumerate(params):
        arrays["w%d" % i], arrays["b%d" % i] = np.asarray(w), np.asarray(b)
    np.savez(out / "params.npz", **arrays)


if __name__ == "__main__":
    app.run(main)
