import numpy as np


def blobs(count, seed):
    """Two clouds of points that touch."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, count)
    return random.normal(y[:, None] * 2.0, 1.0, (count, 2)).astype("float32"), y
