"""Stands for modules that an image lacks, so that a script comes to its flags."""

import inspect
import os
import sys

STUBBED = []  # modules that were made up


class Stub:
    """Stands for whatever a module that the image lacks would offer."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and inspect.isfunction(args[0]):
            return args[0]  # a decorator
        return Stub()

    def __mro_entries__(self, bases):
        return (object,)

    def __iter__(self):
        return iter(())

    def __getitem__(self, key):
        return Stub()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False

    def __fspath__(self):
        return "/nonexistent"


class StubFinder:
    """Finds modules that nothing else finds. It comes last."""

    # Without these there are no flags to find: their absence must be said.
    needed = {"click", "typer", "absl", "fire", "hydra", "docopt", "simple_parsing", "tyro", "jsonargparse", "tap"}

    def __init__(self, here):
        self.here = here

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery

        top = name.partition(".")[0]
        if top in self.needed or top in sys.builtin_module_names or top.startswith("_"):
            return None
        if top != name and top not in STUBBED:
            return None
        frame = sys._getframe(1)  # a stub only for what the script's own files ask for
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        asks = frame.f_code.co_filename if frame else ""
        if asks.startswith("<"):  # a frozen module of Python's own
            return None
        if top == name and not os.path.abspath(asks).startswith(self.here + os.sep):
            return None
        STUBBED.append(top)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        import types

        class StubModule(types.ModuleType):
            def __getattr__(self, name):
                if name == "__version__":
                    return "99.0.0"
                if name.startswith("__"):
                    raise AttributeError(name)
                return Stub()

        return StubModule(spec.name)

    def exec_module(self, module):
        pass


