"""Tells Berth of an unchanged training script what the script itself does not say.

    imports.py   runs a function right after a module was imported; imports frameworks
                 without the garbage collector
    records.py   appends records to the file that Berth reads
    fits.py      which fits of Keras are under way
    training.py  Keras' epochs become metric records
    phases.py    training or validation, and how long a step takes
    stop.py      a SIGTERM ends Keras' fit between two batches
    drain.py     under MPS kernels end before the program does
    caches.py    read-only caches of libraries become links that they may write beside
    ending.py    exit codes for out-of-memory; the frameworks' peak of GPU memory

Rules: import nothing heavy before the program does; swallow every error of our own;
only the main process of the program reports anything.
"""

from berth_shim import caches, drain, ending, imports, records, stop, training

_frameworks = ("tensorflow", "torch", "jax")


def start():
    """Watches what the program imports, if Berth wants reports from this process."""
    main = records.open_for_main()
    drain.start()
    if not main:
        imports.after({name: drain.watch for name in _frameworks}, large=())
        return
    try:
        caches.link()
    except Exception:
        pass  # the libraries do what they did without us

    hooks = {name: training.patch for name in training.MODULES}
    hooks.update((name, _watch_end_of) for name in _frameworks)
    imports.after(hooks, large=_frameworks + ("keras", "tf_keras"))
    stop.remember_main()
    records.hello()


def _watch_end_of(framework):
    ending.watch_memory(framework)
    drain.watch(framework)


def watch_end():
    """Watches how the program ends. It comes after what else sets sys.excepthook."""
    if records.is_main():
        ending.watch_exception()
