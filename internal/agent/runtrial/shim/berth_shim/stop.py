"""A SIGTERM ends Keras' fit between two batches, with exit code 75.

Setting model.stop_training would not do: fit would validate, save the half epoch as a
whole one, and return, so that the script prints a result of a half-trained model.
"""

import os
import sys
import time

from _thread import get_ident

import _signal as signal  # built in: a script may have a signal.py of its own

from berth_shim import drain, fits, records

RESUMABLE = 75  # EX_TEMPFAIL: stopped on request; goes on from its checkpoint

# A validation, or a fit inside a callback, that is under way may end, so that the epoch
# is saved. Berth sends SIGKILL 30 s after SIGTERM.
VALIDATION_SECONDS = 10

_requested = None  # when SIGTERM came, by the monotonic clock
_main_thread = None


def remember_main():
    global _main_thread

    _main_thread = get_ident()


def arm():
    """Takes SIGTERM for the time of a fit, unless someone else has it."""
    if _requested is not None and _in_main_thread():  # a script caught the SystemExit, and goes on to train
        drain.end()

    if _in_main_thread() and (drain.has_term() or signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and not _taken_below()):
        signal.signal(signal.SIGTERM, _on_sigterm)


def disarm():
    """Gives SIGTERM back when the outermost fit has ended."""
    if _in_main_thread() and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        drain.take_term()


def check(callbacks, waiting=False):
    """Ends the program if it was asked to stop and all callbacks of the batch have run."""
    if _requested is None or not _in_main_thread():
        return

    if waiting and time.monotonic() - _requested < VALIDATION_SECONDS:
        return

    try:
        callbacks._flush_futures()  # Keras 3 runs batch hooks in threads
    except Exception:
        pass

    _say("stopped on request between two batches (exit code %d)" % RESUMABLE)
    raise SystemExit(RESUMABLE)


def _on_sigterm(number, frame):
    global _requested

    if not records.is_main() or fits.of(frame) is None:
        drain.end()

        return

    if _requested is None:
        _requested = time.monotonic()


def _in_main_thread():
    return records.is_main() and get_ident() == _main_thread


def _taken_below():
    """Reports whether a library took SIGTERM behind Python's back, as TensorFlow's
    preemption watcher does."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    except Exception:
        pass

    return False


def _say(text):
    try:
        sys.stderr.write("berth: " + text + "\n")
        sys.stderr.flush()
    except Exception:
        pass
