"""Runs a function right after a module was imported, without importing it, and imports
frameworks with Python's garbage collector off."""

import gc
import sys

from _thread import allocate_lock


class _Collector:
    """Python's garbage collector, off while frameworks are imported. Their hundreds of
    thousands of objects stay, and the collector looks at them again and again: that is a
    fifth of the processor time of `import keras`. Once they are there, it leaves them
    alone for good (gc.freeze), else its next round takes half of that."""

    def __init__(self):
        self.lock = allocate_lock()
        self.imports = 0  # under way, of all threads, and one within another
        self.was_on = False

    def __enter__(self):
        with self.lock:
            if self.imports == 0:
                self.was_on = gc.isenabled()
                gc.disable()
            self.imports += 1

    def __exit__(self, *error):
        with self.lock:
            self.imports -= 1
            if self.imports == 0 and self.was_on:
                gc.freeze()
                gc.enable()


_collector = _Collector()


class _Finder:
    """Finds nothing itself: it has the other finders find a module, and a function
    called with the module once its code has run."""

    def __init__(self, hooks, large):
        self.hooks = hooks
        self.large = large
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.hooks and name not in self.large or name in self.busy:
            return None

        self.busy.add(name)
        try:
            spec = self._find(name, path, target)
        finally:
            self.busy.discard(name)

        if spec is not None:
            self._attach(spec)

        return spec

    def _find(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue

            spec = find(name, path, target)
            if spec is not None:
                return spec

        return None

    def _attach(self, spec):
        """Wraps exec_module on the loader object itself, so that its class, which
        programs look at, stays what it is."""
        try:
            loader = spec.loader
            run = loader.exec_module

            def exec_module(module):
                if module.__spec__ is not spec:  # of a loader that several modules share
                    return run(module)

                loader.__dict__.pop("exec_module", None)
                if spec.name in self.large:
                    with _collector:
                        run(module)
                else:
                    run(module)
                self._call(spec.name, module)

            loader.exec_module = exec_module
        except Exception:
            pass

    def _call(self, name, module):
        try:
            self.hooks.pop(name, _nothing)(module)
        except Exception:
            pass


def _nothing(module):
    pass


def after(hooks, large=()):
    """Calls hooks[name](module) once after the import of each named module. The modules
    that are large are imported without the garbage collector."""
    sys.meta_path.insert(0, _Finder(hooks, large))
