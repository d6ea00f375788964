"""Runs a function right after a module was imported, without importing it."""

import sys


class _Finder:
    """Finds nothing itself: it has the other finders find a module, and a function
    called with the module once its code has run."""

    def __init__(self, hooks):
        self.hooks = hooks
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.hooks or name in self.busy:
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
                run(module)
                self._call(spec.name, module)

            loader.exec_module = exec_module
        except Exception:
            pass

    def _call(self, name, module):
        try:
            self.hooks.pop(name)(module)
        except Exception:
            pass


def after(hooks):
    """Calls hooks[name](module) once after the import of each named module."""
    sys.meta_path.insert(0, _Finder(hooks))
