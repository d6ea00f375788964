"""Berth in Python: submit sweeps, wait for them, and read their results.

    import berth

    client = berth.connect()
    sweep = client.submit("sweep.yaml").wait()
    print(sweep.best.params)
    model = sweep.best.download("best")

docs/python.md of Berth's repository shows every function by example.
"""

from importlib.metadata import PackageNotFoundError, version

from berth import models
from berth._client import Client, Spec, connect
from berth._errors import (
    AccessError,
    BerthError,
    BerthWarning,
    BusyError,
    ConflictError,
    FilesError,
    InvalidError,
    NoResultError,
    NotFoundError,
    ProblemError,
    UnreachableError,
    WaitTimeoutError,
)
from berth._space import Choice, Float, Int
from berth._stage import Stage
from berth._sweep import Sweep
from berth._trial import Trial

try:
    __version__ = version("berth")
except PackageNotFoundError:  # used from the source, without being installed
    __version__ = "0"

__all__ = [
    "AccessError",
    "BerthError",
    "BerthWarning",
    "BusyError",
    "Choice",
    "Client",
    "ConflictError",
    "FilesError",
    "Float",
    "Int",
    "InvalidError",
    "NoResultError",
    "NotFoundError",
    "ProblemError",
    "Spec",
    "Stage",
    "Sweep",
    "Trial",
    "UnreachableError",
    "WaitTimeoutError",
    "connect",
    "models",
]
