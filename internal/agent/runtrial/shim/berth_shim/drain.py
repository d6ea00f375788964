"""Under MPS a program ends only after its kernels have ended.

Memory that goes while kernels use it is a fault for every client of the MPS server: an
exception, or SIGTERM's default action, in the middle of a step ends all neighbours on the
GPU. Measured on one H200, 2026-11-27: six programs that raise an exception with kernels of
0.4 s queued killed six neighbours; 12 that waited for their kernels killed none.
"""

import os

import _signal as signal  # built in: a script may have a signal.py of its own

_pid = None  # of the process that waits for its kernels: a forked one has none


def start():
    """Takes SIGTERM, where the trial shares its GPU by MPS."""
    global _pid

    if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        _pid = os.getpid()
        take_term()


def watch(module):
    """Has the kernels waited for at the end. What is registered after a framework's import
    runs before the framework takes itself down."""
    if _pid is None:
        return

    import atexit

    atexit.register(wait)


def take_term():
    """Takes SIGTERM, if it would end the program at once."""
    if _pid is not None and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def has_term():
    """Reports whether SIGTERM is taken for this module alone."""
    return signal.getsignal(signal.SIGTERM) is _on_sigterm


def end():
    """Ends the program as SIGTERM does by default, after its kernels."""
    wait()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def wait():
    """Waits until the kernels of this process have ended."""
    try:
        if os.getpid() == _pid:
            _synchronize()
    except Exception:
        pass


def _on_sigterm(number, frame):
    end()


def _synchronize():
    """Asks CUDA's driver for the context that all frameworks share. It loads no driver and
    makes no context."""
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    flags, active, context = ctypes.c_uint(), ctypes.c_int(), ctypes.c_void_p()

    if cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) or not active.value:
        return

    if not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxPushCurrent_v2(context):
        cuda.cuCtxSynchronize()
