"""Keras' epochs become metric records.

Keras calls every callback through a CallbackList. The shim wraps its methods and adds
no callback: a callback with a batch hook would end Keras' asynchronous dispatch.
"""

from berth_shim import firstfit, fits, phases, records, stop

# Where CallbackList is defined: Keras 3, Keras 2 under its two names, TensorFlow's own.
MODULES = (
    "keras.src.callbacks.callback_list",
    "keras.src.callbacks",
    "keras.callbacks",
    "tf_keras.src.callbacks",
    "tf_keras.callbacks",
    "tensorflow.python.keras.callbacks",
)


class _Steps:
    """Gives each epoch a step. A fit that begins again at epoch 0 goes on after the
    last step of the fit before, so that no epoch replaces another."""

    def __init__(self):
        self.last = 0
        self.offset = 0
        self.fits = 0

    def begin(self):
        self.fits += 1
        self.offset = None

    def of(self, epoch):
        step = epoch + 1  # Keras counts from 0
        if self.offset is None:
            self.offset = max(self.last + 1 - step, 0)

        step += self.offset
        self.last = max(self.last, step)

        return step


_steps = _Steps()


def patch(module):
    """Wraps the CallbackList that a module of Keras defines."""
    cls = getattr(module, "CallbackList", None)
    if cls is None or "_berth_shim" in vars(cls):
        return

    cls._berth_shim = True
    _wrap(cls, "on_train_begin", after=_fit_begins)
    _wrap(cls, "on_epoch_end", before=_lengths, after=_epoch_ended)
    _wrap(cls, "on_train_batch_end", after=_batch_ended)
    _wrap(cls, "on_test_begin", after=_test_begins)
    _wrap(cls, "on_test_batch_end", after=_test_batch_ended)
    _wrap(cls, "on_test_end", after=_test_ends)
    _wrap(cls, "on_train_end", after=_fit_ends)


def _wrap(cls, name, after, before=None):
    """Has a method call after(self, epoch or batch, logs, before's answer) when it is done."""
    original = vars(cls).get(name)
    if original is None:
        return

    from functools import wraps

    @wraps(original)
    def method(self, *args, **kwargs):
        known = _guarded(before, self) if before else None
        result = original(self, *args, **kwargs)
        _guarded(after, self, args, kwargs, known)

        return result

    setattr(cls, name, method)


def _guarded(do, *args):
    """Calls do. Only the SystemExit that stops the training passes."""
    try:
        return do(*args)
    except Exception:
        return None


def _fit_begins(callbacks, args, kwargs, known):
    callbacks._berth_inner = fits.begins()
    if not _inner(callbacks):
        _steps.begin()
        _guarded(firstfit.fit_begins, _steps.fits)
        _guarded(phases.fit_begins)
        stop.arm()


def _inner(callbacks):
    """Reports whether a list belongs to a fit inside a callback of another fit. To the
    outer one it is as a validation: its epochs are no rows, and a stop waits for it."""
    return getattr(callbacks, "_berth_inner", False)


def _fit_ends(callbacks, args, kwargs, known):
    stop.check(callbacks, waiting=_inner(callbacks))
    if not _inner(callbacks):
        _guarded(firstfit.fit_ends, _steps.fits)
        _guarded(phases.fit_ends)
        stop.disarm()


def _test_begins(callbacks, args, kwargs, known):
    if not _inner(callbacks):
        import sys

        phases.test_begins(fits.of(sys._getframe()) is not None)


def _test_ends(callbacks, args, kwargs, known):
    if not _inner(callbacks):
        phases.test_ends()


def _batch_ended(callbacks, args, kwargs, known):
    # For each batch: it reads a clock and no logs, which Keras would wait for the GPU for.
    inner = _inner(callbacks)
    if not inner:
        phases.batch_ended(args[0] if args else kwargs["batch"])

    stop.check(callbacks, waiting=inner)


def _test_batch_ended(callbacks, args, kwargs, known):
    stop.check(callbacks, waiting=True)


def _epoch_ended(callbacks, args, kwargs, known):
    if not _inner(callbacks):
        _guarded(phases.epoch_ended)
        _guarded(_report, callbacks, args, kwargs, known)

    stop.check(callbacks, waiting=_inner(callbacks))


def _report(callbacks, args, kwargs, known):
    epoch = args[0] if args else kwargs["epoch"]
    logs = args[1] if len(args) > 1 else kwargs.get("logs")
    metrics = {}

    for name, value in _logged(callbacks, logs, known or {}).items():
        try:
            metrics[str(name)] = float(value)
        except Exception:
            pass  # an image, a text

    if metrics and records.is_main():
        _guarded(firstfit.epoch_ended, _steps.fits, int(epoch), metrics)
        records.write({"type": "metric", "step": _steps.of(int(epoch)), "epoch": int(epoch), "fit": _steps.fits, "metrics": metrics})


def _logged(callbacks, logs, known):
    """What an epoch logged, with what callbacks added: Keras' History sees that last."""
    metrics = dict(logs or {})
    history = _history(callbacks)

    for name, values in (history or {}).items():
        if len(values) > known.get(name, 0):
            metrics[name] = values[-1]

    return {name: value for name, value in metrics.items() if not isinstance(value, dict)}


def _lengths(callbacks):
    return {name: len(values) for name, values in (_history(callbacks) or {}).items()}


def _history(callbacks):
    for callback in reversed(callbacks.callbacks):
        if type(callback).__name__ == "History":
            return getattr(callback, "history", None)

    return None
