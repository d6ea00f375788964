"""Which fits of Keras are under way.

The frames say it, and no counter: a fit that an exception ended tells nobody.
"""

import sys

from _thread import get_ident

_running = {}  # thread -> [(id, code) of the frames of its fits, the outermost first]


def of(frame):
    """The innermost frame of a fit of Keras at or above a frame, or None."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name.startswith("fit") and module.split(".")[0] in ("keras", "tf_keras", "tensorflow"):
            return frame

        frame = frame.f_back

    return None


def begins():
    """Notes the fit that calls this, and reports whether it runs inside another one. A
    frame may lie where one lay before: with the same code only a later fit does."""
    fit = of(sys._getframe())
    if fit is None:
        return False

    above = set()
    frame = fit.f_back
    while frame is not None:
        above.add((id(frame), frame.f_code))
        frame = frame.f_back

    outer = [known for known in _running.get(get_ident(), ()) if known in above]
    _running[get_ident()] = outer + [(id(fit), fit.f_code)]

    return bool(outer)
