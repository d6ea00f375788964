"""Which part of its work a program of Keras is at, and how long a step of it takes."""

import time

from _thread import get_ident

from berth_shim import records

# Berth tells so many phases apart, and reads 32 MiB of records: a script may call fit or
# evaluate for each sample.
MOST_RECORDS = 10000

# So many seconds of steps after the first one, which compiles, are told at once: what the
# program holds of a GPU by then sizes the trials that wait.
FIRST_SECONDS = 1.0

_written = 0
_trains = False  # such steps were told
_fitting = False
_fit_thread = None  # of the fit that began last
_now = None  # the phase written last
_last = None  # (number, time) of the training batch that ended last, since the phase began
_steps = 0
_seconds = 0.0


def fit_begins():
    global _fitting, _fit_thread

    _fitting, _fit_thread = True, get_ident()
    _enter("training")


def fit_ends():
    global _fitting

    _fitting = False
    _enter("other")


def test_begins(fitting):
    """fitting = inside a fit: one that an exception ended tells nobody."""
    global _fitting

    _fitting = fitting
    _enter("validation")


def test_ends():
    _enter("training" if _fitting else "other")


def batch_ended(number):
    """Counts the steps since the batch before: the first of an epoch has none, as it
    waits for data, and compiles. Several steps an execution end as one batch. Of fits
    in several threads the one that began last counts."""
    global _last, _steps, _seconds

    if get_ident() != _fit_thread:
        return

    at = time.perf_counter()
    if _last is not None and number > _last[0]:
        _steps += number - _last[0]
        _seconds += at - _last[1]

    _last = (number, at)
    if not _trains and _seconds >= FIRST_SECONDS:
        _tell_steps()


def epoch_ended():
    global _last

    _tell_steps()
    _last = None


def _tell_steps():
    global _trains, _steps, _seconds

    if _steps:
        _write({"type": "steps", "count": _steps, "seconds": _seconds})

    _trains, _steps, _seconds = True, 0, 0.0


def _enter(phase):
    global _now, _last

    _last = None
    if phase != _now:
        _now = phase
        _write({"type": "phase", "phase": phase, "at": time.time()})


def _write(record):
    global _written

    if _written < MOST_RECORDS:
        _written += 1
        records.write(record)
