"""Gives libraries caches that they may write to.

A cache that is baked into the image, or mounted, is read-only in a trial. Keras then
looks elsewhere, and Hugging Face fails at its lock files. So each such cache gets a
directory in /tmp whose files are links to those of the cache, and the library's
variable names that one. What a library adds there is gone when the attempt ends.
Lock files are not linked: a library opens them to write, and makes them anew.
"""

import itertools
import os

_ROOT = "/tmp/.berth-caches"
_HOMES = ("/root", "/home/*")  # of the image's own users; * stands for any
_MOST = 2000  # entries that are made; a directory that has more than are left is one link

# Each variable, and where the library looks without it: below a home.
_CACHES = (
    ("KERAS_HOME", ".keras"),
    ("HF_HOME", ".cache/huggingface"),
    ("HF_HUB_CACHE", None),
    ("HF_DATASETS_CACHE", None),
    ("TORCH_HOME", ".cache/torch"),
    ("TFHUB_CACHE_DIR", None),
    ("TFDS_DATA_DIR", "tensorflow_datasets"),
    ("NLTK_DATA", "nltk_data"),
    ("SKLEARN_DATA", "scikit_learn_data"),
    ("MPLCONFIGDIR", ".config/matplotlib"),
    ("XDG_CACHE_HOME", None),
)


def link():
    """Has the variables of caches that cannot be written to name links to them."""
    for variable, below in _CACHES:
        cache = os.environ.get(variable) or _baked(below)
        if not cache or not os.path.isdir(cache) or os.access(cache, os.W_OK):
            continue
        try:
            os.environ[variable] = _links(variable, os.path.abspath(cache))
        except OSError:
            pass  # the library does what it did without us


def _baked(below):
    """Where the image has a cache in the home of its own user; HOME of a trial is /tmp."""
    if below is None or os.path.isdir(os.path.join(os.path.expanduser("~"), below)):
        return None
    for home in _HOMES:
        parent = os.path.dirname(home)
        for name in _names(parent) if home.endswith("*") else [os.path.basename(home)]:
            cache = os.path.join(parent, name, below)
            if _names(cache):
                return cache
    return None


def _names(directory):
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _few(directory, most):
    """The names in a directory; None when there are more, or when it is closed to us."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, most + 1))
    except OSError:
        return None
    return names if len(names) <= most else None


def _links(variable, cache):
    """Makes the directory of links, unless another process has, and returns its path."""
    made = os.path.join(_ROOT, variable)
    if os.path.isdir(made):
        return made
    names = _few(cache, _MOST)
    if names is None:
        return cache
    part = "%s.%d" % (made, os.getpid())
    os.makedirs(part)
    left, rest, seen = _MOST - len(names), [("", names)], {os.path.realpath(cache)}
    while rest:
        below, names = rest.pop(0)  # what is near the top comes first
        for name in names:
            path = os.path.join(below, name)
            source = os.path.join(cache, path)
            if not os.path.isdir(source):
                if not name.endswith(".lock"):
                    os.symlink(source, os.path.join(part, path))
                continue
            real = os.path.realpath(source)  # a link to a directory above would have no end
            inside = None if real in seen else _few(source, left)
            if inside is None:
                os.symlink(source, os.path.join(part, path))
                continue
            seen.add(real)
            left -= len(inside)
            os.mkdir(os.path.join(part, path))
            rest.append((path, inside))
    try:
        os.rename(part, made)
    except OSError:
        if not os.path.isdir(made):  # else a process of the same trial was faster
            raise
    return made
