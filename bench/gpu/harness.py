"""harness: runs sweeps through a running Berth, and reports the results.

bench/gpu/measure.py has the experiments. What an experiment has so far is in the file
that begin() names, written anew before each sweep, so that a cut one leaves its figures.
"""

import contextlib
import datetime
import itertools
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request

BERTH = os.path.join(".build", "berth")
IMAGE = "berth-gpu/tensorflow:1"

_result, _path = {}, None


def begin(path):
    """Returns the dictionary of an experiment's figures, to be filled."""
    global _path
    _path = path
    _result.clear()
    while not get("hosts")["data"]:  # its worker starts last
        time.sleep(0.2)
    _result.update(device=devices(), version=berth("--version").strip())
    return _result


def save():
    if _path:
        _path.write_text(json.dumps(_result, indent=1) + "\n")


def berth(*args, stdin=None):
    done = subprocess.run([BERTH, *args], check=False, capture_output=True, text=True, input=stdin)
    if done.returncode:
        raise RuntimeError(f"berth {' '.join(args)}: {done.stderr}")
    return done.stdout


def get(path):
    with urllib.request.urlopen(f"{os.environ['BERTH_SERVER']}/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def devices():
    return get("hosts")["data"][0]["devices"]


def forget():
    for probe in json.loads(berth("probe", "list", "-o", "json")):
        berth("probe", "forget", probe["shape_key"])


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sweep_file(command, values, name="gpu", objective="val_accuracy", **resources):
    """A sweep over the cross product of the values; parameters of the shape are marked."""
    parameters = [{"name": n, "values": v, "memory": n not in ("seed", "work")} for n, v in values.items()]
    limits = {"max_trials": math.prod(len(v) for v in values.values()), "max_duration": "30m", "max_trial_duration": "10m"}
    if "max_parallel" in resources:
        limits["max_parallel"] = resources.pop("max_parallel")
    return {
        "version": 1, "name": name, "image": IMAGE, "command": command + [f"--{n}={{{{{n}}}}}" for n in values],
        "parameters": parameters, "search": {"algorithm": "grid"}, "objective": {"metric": objective, "goal": "maximize"},
        "limits": limits, "resources": {"device": "gpu", **resources}, "metrics": {"source": "stdout"},
    }


def but(file, name, **changes):
    """The same sweep under another name, with other resources or limits."""
    resources = {**file["resources"], **{k: v for k, v in changes.items() if k != "max_parallel"}}
    limits = {**file["limits"], **{k: v for k, v in changes.items() if k == "max_parallel"}}
    return {**file, "name": name, "resources": resources, "limits": limits}


def submit(file):
    save()
    return json.loads(berth("sweep", "submit", "-f", "-", "-o", "json", stdin=json.dumps(file)))["id"]


def watch(*sweeps):
    for sweep in sweeps:
        subprocess.run([BERTH, "sweep", "watch", sweep], check=False, capture_output=True)  # it fails when all trials did


def pages(path):
    data, cursor = [], ""
    while True:
        page = get(f"{path}?limit=200" + (f"&cursor={cursor}" if cursor else ""))
        data += page["data"]
        cursor = page.get("next_cursor", "")
        if not cursor:
            return data


def run(*files):
    """Runs sweeps at the same time, to their ends. Returns their figures."""
    began = time.time()
    sweeps = [submit(file) for file in files]
    watch(*sweeps)
    return figures(sweeps, began)


def attempt_figures(a, began):
    demand, usage = a["demand"], a["usage"]
    return {
        "trial": a["trial_number"], "attempt": a["number"], "shape": a["shape_key"][:8], "kind": a.get("failure_kind", ""),
        "class": a.get("device_class", ""), "device": a.get("device_id", ""),
        "start": round(seconds(a["started_at"]) - began, 2), "took": round(seconds(a["finished_at"]) - seconds(a["started_at"]), 2),
        "reserved_mib": demand.get("device_bytes", 0) >> 20, "peak_mib": usage.get("device_peak_bytes", 0) >> 20,
        "framework_mib": usage.get("framework_peak_bytes", 0) >> 20, "spill_mib": demand.get("spill_bytes", 0) >> 20,
        "host_mib": [demand["memory_bytes"] >> 20, usage["memory_peak_bytes"] >> 20],
        "activity": usage["device_activity"], "cpu_seconds": usage["cpu_seconds"], "value": a.get("value"),
        **({"message": a["message"]} if a.get("message") else {}),
    }


def figures(sweeps, began):
    took = time.time() - began
    attempts = [a for sweep in sweeps for a in pages(f"sweeps/{sweep}/attempts")]
    trials = [t for sweep in sweeps for t in pages(f"sweeps/{sweep}/trials")]
    started = sorted((a for a in attempts if a.get("started_at") and a.get("finished_at")), key=lambda a: a["started_at"])
    edges = sorted([(seconds(a["started_at"]), 1) for a in started] + [(seconds(a["finished_at"]), -1) for a in started])
    kinds = [a.get("failure_kind", "") for a in attempts]
    states = [t["state"] for t in trials]
    out = {
        "seconds": round(took, 2), "trials": {state: states.count(state) for state in sorted(set(states))},
        "to_last_result": round(max(seconds(a["finished_at"]) for a in started) - began, 2) if started else None,
        "span": round(edges[-1][0] - edges[0][0], 2) if edges else None,
        "at_once": max(itertools.accumulate(step for _, step in edges)) if edges else 0,
        "outcomes": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "classes": sorted({a.get("device_class", "") for a in started}),
        "attempts": [attempt_figures(a, began) for a in started],
        "messages": sorted({t.get("message", "") for t in trials}),
        "advice": [d.get("advice") for d in devices()],
        "notes": [get(f"sweeps/{sweep}/report?limit=1")["notes"] for sweep in sweeps],
    }
    print(json.dumps({k: out[k] for k in ("seconds", "span", "at_once", "outcomes", "classes", "advice")}), flush=True)
    return out


def without_berth(device, *command, flags=()):
    """The command line that runs a program in a container, on a GPU in growth mode."""
    return ["docker", "run", "--rm", "--network", "none", "--tmpfs", "/tmp:mode=1777", "--device", f"nvidia.com/gpu={device}",
            "-e", "TF_FORCE_GPU_ALLOW_GROWTH=true", *flags, IMAGE, *command]


@contextlib.contextmanager
def own_mps(device):
    """An MPS daemon of ours on a GPU, while the body runs. Yields flags by which docker run makes a container its client."""
    folder = tempfile.mkdtemp(prefix="script-mps-")
    os.chmod(folder, 0o755)  # its clients are another user
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": device, "CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], check=True, env=env)
    try:
        yield ["-v", f"{folder}:/mps", "-e", "CUDA_MPS_PIPE_DIRECTORY=/mps"]
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, check=False, env=env)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def smi(device):
    """Reads what nvidia-smi calls the utilisation of a GPU, while the body runs. Yields a function that returns its mean
    since that was last called, in percent."""
    process = subprocess.Popen(["nvidia-smi", "-i", device, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "250"],
                               stdout=subprocess.PIPE, bufsize=0)
    os.set_blocking(process.stdout.fileno(), False)

    def mean():
        values = [float(line) for line in (process.stdout.read() or b"").split()]
        return round(statistics.mean(values), 1) if values else None

    try:
        yield mean
    finally:
        process.terminate()
        process.wait()
