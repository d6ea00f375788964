"""Starts Berth's shim in every Python of a trial (docs/shim.md).

Python imports this module by itself, as the directory stands first in PYTHONPATH. It
runs the sitecustomize that it hides, as Python would have done, and leaves sys.path
as it was. It must parse on any Python, so that an old one goes on without the shim.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _quietly(do):
    """Calls do. Without the shim a program does what it did before there was one."""
    try:
        do()
    except Exception:
        pass


def _run_hidden():
    """Runs the sitecustomize that this one hides. Its errors are Python's to report."""
    if sys.version_info < (3, 5):
        import imp

        try:
            found = imp.find_module("sitecustomize", sys.path)
        except ImportError:
            return
        imp.load_module("sitecustomize", *found)
        return

    from _frozen_importlib_external import PathFinder  # built in: a script may have a warnings.py of its own

    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or not spec.has_location:
        return

    from _frozen_importlib import module_from_spec

    ours = sys.modules.get(__name__)
    sys.modules[__name__] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules[__name__] = ours
        raise


def _start():
    import berth_shim

    berth_shim.start()


def _watch_end():
    import berth_shim

    berth_shim.watch_end()


if sys.version_info >= (3, 7):
    _quietly(_start)
sys.path[:] = [entry for entry in sys.path if entry != _here]
try:
    _run_hidden()
finally:
    if "berth_shim" in sys.modules:
        _quietly(_watch_end)
