"""How the program ends: exit codes for out-of-memory, and the frameworks' own peak of
GPU memory."""

import sys

from berth_shim import records

DEVICE_OOM = 86
HOST_OOM = 87

# What libraries say of a GPU without memory, in exceptions of any class: PyTorch outside
# its caching allocator, XGBoost and CuPy, LightGBM, RMM (as a MemoryError).
_device_words = (
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "cudaErrorMemoryAllocation",
    "[CUDA] out of memory",
    "out_of_memory: CUDA error",
    "out_of_memory: RMM failure",
)

_kinds = {DEVICE_OOM: "device_oom", HOST_OOM: "host_oom"}
_watching = False
_written = False


def watch_exception():
    """Gives an out-of-memory that ends the program its exit code. The hook of before
    still prints the traceback; every other exception ends with 1, as always."""
    global _watching

    if _watching:
        return

    _watching = True
    previous = sys.excepthook

    def hook(kind, error, trace):
        previous(kind, error, trace)

        code = None
        try:
            if records.is_main():
                code = exit_code(error)
            if code:
                records.write({"type": "error", "kind": _kinds[code]})
        except Exception:
            code = None  # without its record the code would be the script's own word

        if code and sys.excepthook is hook:  # a hook of the script's that called this one goes on
            raise SystemExit(code)

    sys.excepthook = hook


def exit_code(error):
    """The exit code of an out-of-memory of a framework or of Python; None of all else.
    What may mean a full GPU or a broken driver is left to Berth, which has readings."""
    text = str(error)
    if any(words in text for words in _device_words):
        return DEVICE_OOM

    for cls in type(error).__mro__:
        code = _code_of(cls.__module__.split(".")[0], cls.__name__, text)
        if code:
            return code

    return HOST_OOM if isinstance(error, MemoryError) else None


def _code_of(library, name, text):
    if library == "tensorflow" and name == "ResourceExhaustedError":
        return _tensorflow(text)
    if library == "tensorflow" and name == "InternalError" and "Dst tensor is not initialized" in text:
        return DEVICE_OOM
    if library in ("torch", "cupy") and name == "OutOfMemoryError":
        return DEVICE_OOM
    if library == "builtins" and name == "RuntimeError" and "DefaultCPUAllocator: can't allocate memory" in text:
        return HOST_OOM
    if library in ("jax", "jaxlib") and name in ("JaxRuntimeError", "XlaRuntimeError"):
        return _jax(text)

    return None


def _tensorflow(text):
    """TensorFlow says the same of a full disk, and of messages that are too large."""
    if "OOM when allocating tensor" in text:
        if "device:GPU" in text or "_bfc" in text and "allocator GPU_" in text:
            return DEVICE_OOM
        if "device:CPU" in text or "allocator cpu" in text or "allocator mklcpu" in text:
            return HOST_OOM
    elif "Out of memory while trying to allocate" in text and _of_tensorflow():  # XLA
        return DEVICE_OOM

    return None


def _jax(text):
    if "RESOURCE_EXHAUSTED" not in text or "out of memory" not in text.lower():
        return None

    platform = sys.modules["jax"].default_backend()

    return {"cpu": HOST_OOM, "gpu": DEVICE_OOM, "cuda": DEVICE_OOM, "rocm": DEVICE_OOM}.get(platform)


def watch_memory(module):
    """Has the peaks written at the end. What is registered after a framework's import
    runs before the framework takes itself down."""
    import atexit

    atexit.register(_write_peaks)


def _write_peaks():
    global _written

    if _written or not records.is_main():
        return

    _written = True
    peaks = {}

    for name, read in (("tensorflow", _of_tensorflow), ("torch", _of_torch), ("jax", _of_jax)):
        try:
            peak = read() if name in sys.modules else None
            if peak:
                peaks[name] = int(peak)
        except Exception:
            pass

    try:
        if peaks:
            records.write({"type": "memory", "device_peak_bytes": sum(peaks.values()), "frameworks": peaks})
    except Exception:
        pass


def _of_tensorflow():
    """The most that TensorFlow's tensors held on GPUs; None when it has touched none.
    Asking must not be what makes it touch one."""
    context = sys.modules["tensorflow.python.eager.context"].context_safe()
    if context is None or not context._initialized:
        return None

    peaks = [context.get_memory_info(device.name)["peak"] for device in context.list_logical_devices("GPU")]

    return sum(peaks) if peaks else None


def _of_torch():
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return None

    return sum(cuda.max_memory_allocated(n) for n in range(cuda.device_count()))


def _of_jax():
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None or not bridge.backends_are_initialized():
        return None

    stats = [device.memory_stats() or {} for device in sys.modules["jax"].local_devices()]

    return sum(s.get("peak_bytes_in_use", 0) for s in stats)
