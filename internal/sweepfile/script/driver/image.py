"""Lists an image's Python and frameworks, and how long their imports take.

Berth runs this in a container as a trial would run: python3 -c <this file>. Each
finding is a line of JSON behind MARK as soon as it is known, so that a container
that is stopped has said something.
"""

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import time

MARK = "\x1eberth-flags "
# Distributions by the module that they bring.
FRAMEWORKS = {"tensorflow": ["tensorflow", "tensorflow-cpu"], "keras": ["keras"], "torch": ["torch"], "jax": ["jax"], "sklearn": ["scikit-learn"]}


def version(names):
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return ""


signal.alarm(int(sys.argv[1]))  # when no process is left to stop the container
found = {"python": sys.version.split()[0], "uid": os.getuid(), "gid": os.getgid(), "frameworks": []}
for module, names in FRAMEWORKS.items():
    if version(names):
        found["frameworks"].append({"module": module, "version": version(names)})
for framework in [None] + found["frameworks"]:
    if framework:
        began = time.perf_counter()
        run = subprocess.run([sys.executable, "-c", "import " + framework["module"]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        framework["import_seconds"] = round(time.perf_counter() - began, 2)
        if run.returncode:
            framework["error"] = (run.stderr.decode(errors="replace").strip().splitlines() or ["exit code %d" % run.returncode])[-1][:500]
    print("\n" + MARK + json.dumps(found), flush=True)
