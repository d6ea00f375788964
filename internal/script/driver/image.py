"""Says what an image has: Python, frameworks, byte code, GPU libraries, times.

Berth runs this in a container as a trial would run: python3 -c <this file>. Each
finding is a line of JSON behind MARK as soon as it is known, so that a container
that is stopped has said something. Nothing of a framework is imported here.
"""

import glob
import importlib.metadata
import importlib.util
import json
import os
import signal
import site
import subprocess
import sys
import sysconfig
import time

MARK = "\x1eberth-flags "
# Distributions by the module that they bring.
FRAMEWORKS = [
    ("tensorflow", ["tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly"]),
    ("keras", ["keras"]),
    ("torch", ["torch"]),
    ("jax", ["jax"]),
    ("sklearn", ["scikit-learn"]),
]
GPU = ["libcudart.so*", "libcublas.so*", "libcudnn.so*", "libnccl.so*"]


def say(**finding):
    sys.stdout.write("\n" + MARK + json.dumps(finding) + "\n")
    sys.stdout.flush()


def packages():
    dirs = [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages") and os.path.isdir(p)]
    dirs += [p for p in site.getsitepackages() if os.path.isdir(p)] if hasattr(site, "getsitepackages") else []
    return sorted(set(os.path.realpath(p) for p in dirs))


def stale(source, compiled):
    """Whether Python would compile again, as it does when the time stamps differ."""
    with open(compiled, "rb") as file:
        head = file.read(16)
    if head[:4] != importlib.util.MAGIC_NUMBER:
        return True
    if head[4] & 1:  # by hash: checked only when its second bit is set
        return False
    info = os.stat(source)
    return int.from_bytes(head[8:12], "little") != int(info.st_mtime) & 0xFFFFFFFF or int.from_bytes(head[12:16], "little") != info.st_size & 0xFFFFFFFF


def byte_code(dirs):
    files = compiled = unreadable = 0
    first = ""
    for top in dirs:
        for folder, below, names in os.walk(top, onerror=lambda error: None):
            below[:] = [d for d in below if d != "__pycache__"]
            for name in below:
                if not os.access(os.path.join(folder, name), os.R_OK | os.X_OK):
                    unreadable, first = unreadable + 1, first or os.path.join(folder, name)
            for name in names:
                if not name.endswith(".py"):
                    continue
                path = os.path.join(folder, name)
                files += 1
                if not os.access(path, os.R_OK):
                    unreadable, first = unreadable + 1, first or path
                    continue
                try:
                    compiled += not stale(path, importlib.util.cache_from_source(path))
                except OSError:
                    pass
    return {"dirs": dirs, "files": files, "compiled": compiled, "unreadable": unreadable, "first_unreadable": first}


def own_files():
    """Files of the working directory, where scripts lie, that a trial cannot read."""
    here, unreadable, first, seen = os.getcwd(), 0, "", 0
    if here == "/":
        return {"dir": here, "unreadable": 0, "first_unreadable": ""}
    if not os.access(here, os.R_OK | os.X_OK):
        return {"dir": here, "unreadable": 1, "first_unreadable": here}
    for folder, below, names in os.walk(here):
        for name in below + names:
            path = os.path.join(folder, name)
            seen += 1
            if not os.access(path, os.R_OK) and os.path.exists(path):
                unreadable, first = unreadable + 1, first or path
        if seen > 20000:
            break
    return {"dir": here, "unreadable": unreadable, "first_unreadable": first}


def gpu_libraries(dirs):
    places = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/usr/lib/*-linux-gnu", "/usr/lib64", "/opt/conda/lib"]
    places += [os.path.join(d, "nvidia", "*", "lib") for d in dirs] + [os.path.join(d, "torch", "lib") for d in dirs]
    found = set()
    for pattern in GPU:
        for place in places:
            for path in glob.glob(os.path.join(place, pattern)):
                found.add(os.path.basename(path).split(".so")[0] + ".so")
    return sorted(found)


def timed(*args):
    began = time.perf_counter()
    done = subprocess.run([sys.executable] + list(args), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - began, done.returncode, done.stderr.decode(errors="replace")


def slowest(text):
    """The packages whose own files took longest, of what -X importtime prints."""
    spent = {}
    for line in text.splitlines():
        parts = line.partition("import time:")[2].split("|")
        if len(parts) != 3 or not parts[0].strip().isdigit():
            continue
        name = ".".join(parts[2].strip().split(".")[:2])
        spent[name] = spent.get(name, 0) + int(parts[0]) / 1e6
    return [{"module": name, "seconds": round(s, 3)} for name, s in sorted(spent.items(), key=lambda item: -item[1])[:5]]


def main():
    if len(sys.argv) > 1:
        signal.alarm(int(sys.argv[1]))  # when nobody is left to stop the container
    say(python=sys.version.split()[0], uid=os.getuid(), gid=os.getgid())
    found = []
    for module, distributions in FRAMEWORKS:
        for name in distributions:
            try:
                found.append({"module": module, "name": name, "version": importlib.metadata.version(name)})
                break
            except Exception:
                pass
    dirs = packages()
    stdlib = sysconfig.get_path("stdlib")
    say(frameworks=found, gpu_libraries=gpu_libraries(dirs), packages=byte_code(dirs),
        standard=byte_code([stdlib]) if stdlib and not any(d.startswith(stdlib) for d in dirs) else None, files=own_files())
    say(interpreter_seconds=round(min(timed("-c", "pass")[0] for _ in range(3)), 3))
    modules = [f["module"] for f in found]
    if "tensorflow" in modules:
        modules = [m for m in modules if m != "keras"]  # it imports the other
    imports = []
    for module in modules:
        first, code, text = timed("-c", "import " + module)
        entry = {"module": module, "first_seconds": round(first, 2), "error": ""}
        if code:
            lines = [line for line in text.strip().splitlines() if line.strip()]
            entry["error"] = lines[-1][:500] if lines else "exit code %d" % code
        else:
            entry["second_seconds"] = round(timed("-c", "import " + module)[0], 2)
            entry["slowest"] = slowest(timed("-X", "importtime", "-c", "import " + module)[2])
        imports.append(entry)
        say(imports=imports)


main()
