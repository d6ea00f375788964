"""measure: experiments with a GPU, each through a running Berth.

    measure.py EXPERIMENT OUT     writes OUT/EXPERIMENT.json

bench/gpu/run starts Berth and calls this. A is the aggregate speed-up: the time that the
trials take alone, one after the other, by the time from submission to the last result.
"""

import datetime
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

BERTH = os.path.join(".build", "berth")
IMAGE = "berth-gpu/tensorflow:1"


def berth(*args, stdin=None):
    return subprocess.run([BERTH, *args], check=True, capture_output=True, text=True, input=stdin).stdout


def get(path):
    with urllib.request.urlopen(f"{os.environ['BERTH_SERVER']}/api/v1/{path}", timeout=60) as answer:
        return json.load(answer)


def forget():
    for probe in json.loads(berth("probe", "list", "-o", "json")):
        berth("probe", "forget", probe["shape_key"])


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def sweep_file(command, values, name="gpu", objective="val_accuracy", **resources):
    """A sweep over the cross product of the values; what is in the shape is marked."""
    parameters = [{"name": n, "values": v, "memory": n not in ("seed", "work")} for n, v in values.items()]
    limits = {"max_trials": math.prod(len(v) for v in values.values()), "max_duration": "30m", "max_trial_duration": "10m"}
    if "max_parallel" in resources:
        limits["max_parallel"] = resources.pop("max_parallel")
    return {
        "version": 1, "name": name, "image": IMAGE, "command": command + [f"--{n}={{{{{n}}}}}" for n in values],
        "parameters": parameters, "search": {"algorithm": "grid"}, "objective": {"metric": objective, "goal": "maximize"},
        "limits": limits, "resources": {"device": "gpu", **resources}, "metrics": {"source": "stdout"},
    }


def submit(file):
    return json.loads(berth("sweep", "submit", "-f", "-", "-o", "json", stdin=json.dumps(file)))["id"]


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
    for sweep in sweeps:
        subprocess.run([BERTH, "sweep", "watch", sweep], check=False, capture_output=True)  # it fails when all trials did
    return figures(sweeps, began)


def figures(sweeps, began):
    took = time.time() - began
    attempts = [a for sweep in sweeps for a in pages(f"sweeps/{sweep}/attempts")]
    trials = [t for sweep in sweeps for t in pages(f"sweeps/{sweep}/trials")]
    started = [a for a in attempts if a.get("started_at") and a.get("finished_at")]
    edges = sorted([(seconds(a["started_at"]), 1) for a in started] + [(seconds(a["finished_at"]), -1) for a in started])
    kinds = [a.get("failure_kind", "") for a in attempts]
    states = [t["state"] for t in trials]
    out = {
        "sweeps": sweeps, "seconds": round(took, 2), "trials": {state: states.count(state) for state in sorted(set(states))},
        "to_last_result": round(max(seconds(a["finished_at"]) for a in started) - began, 2) if started else None,
        "span": round(edges[-1][0] - edges[0][0], 2) if edges else None,
        "at_once": max(itertools.accumulate(step for _, step in edges)) if edges else 0,
        "outcomes": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "classes": sorted({a.get("device_class", "") for a in started}),
        "attempts": [
            {
                "trial": a["trial_number"], "attempt": a["number"], "shape": a["shape_key"][:8], "kind": a.get("failure_kind", ""),
                "class": a.get("device_class", ""), "device": a.get("device_id", ""),
                "start": round(seconds(a["started_at"]) - began, 2), "took": round(seconds(a["finished_at"]) - seconds(a["started_at"]), 2),
                "reserved_mib": a["demand"].get("device_bytes", 0) >> 20, "peak_mib": a["usage"].get("device_peak_bytes", 0) >> 20,
                "host_mib": [a["demand"]["memory_bytes"] >> 20, a["usage"]["memory_peak_bytes"] >> 20],
                "activity": a["usage"]["device_activity"], "cpu_seconds": a["usage"]["cpu_seconds"], "value": a.get("value"),
                **({"message": a["message"]} if a.get("failure_kind") != "ok" else {}),
            }
            for a in sorted(started, key=lambda a: a["started_at"])
        ],
        "messages": sorted({t.get("message", "") for t in trials}),
        "advice": [d.get("advice") for h in get("hosts")["data"] for d in h["devices"]],
        "report": [get(f"sweeps/{sweep}/report?limit=1")["notes"] for sweep in sweeps],
    }
    print(json.dumps({k: v for k, v in out.items() if k not in ("attempts", "report", "sweeps")}), flush=True)
    return out


def train(**values):
    return sweep_file(["python3", "/jobs/train.py"], values)


def but(file, name, **changes):
    resources = {**file["resources"], **{k: v for k, v in changes.items() if k != "max_parallel"}}
    limits = {**file["limits"], **{k: v for k, v in changes.items() if k == "max_parallel"}}
    return {**file, "name": name, "resources": resources, "limits": limits}


def seeds(n):
    return list(range(1, n + 1))


def alone_seconds():
    """How long a trial of train.py takes with the GPU for itself, its container's start included."""
    forget()
    alone = run(but(train(seed=seeds(4)), "alone", max_parallel=1, gpu_sharing="exclusive"))
    forget()
    return statistics.mean(a["took"] for a in alone["attempts"][1:]), alone  # the first one's caches are cold


def packed(rows):
    """Runs one shape several times: name, trials and what to change of the sweep file."""
    one, alone = alone_seconds()
    out = {"alone": alone}
    for name, n, changes in rows:
        out[name] = run(but(train(seed=seeds(n)), name, **changes))
        out[name]["A"] = round(n * one / out[name]["to_last_result"], 2)
        print(name, out[name]["A"], flush=True)
    return {"alone_seconds": one, "rows": out}


def packing():
    """As Berth decides: from nothing, then with a known shape. About 7 minutes."""
    return packed([("unknown, 72", 72, {}), ("known, 72", 72, {}), ("known, 24", 24, {})])


def otherwise():
    """What Berth did not choose. About 7 minutes."""
    return packed([
        ("probe", 1, {}), ("4 at once", 12, {"max_parallel": 4}), ("12 at once", 24, {"max_parallel": 12}),
        ("40 at once", 40, {"cpus": 0.4}), ("time slices, 24", 24, {"gpu_sharing": "time_slicing"}),
    ])


def default_mode(pairs=8):
    """TensorFlow's default mode against growth, alone on the GPU, in turns."""
    rows = {"growth": [], "default": []}
    forget()
    for pair in range(pairs + 1):
        for mode in (("growth", "default"), ("default", "growth"))[pair % 2]:
            file = but(train(seed=[pair]), mode, gpu_sharing="exclusive")
            if mode == "default":
                file["command"] = [*file["command"], "--default-mode"]
            attempt = run(file)["attempts"][0]
            if pair > 0:  # the first pair fills the caches
                rows[mode].append(attempt)
    ratios = [d["took"] / g["took"] for d, g in zip(rows["default"], rows["growth"])]
    mean, half = statistics.mean(ratios), 2.365 * statistics.stdev(ratios) / math.sqrt(len(ratios))  # Student's t, 7 degrees
    return {"rows": rows, "ratio": round(mean, 4), "interval": [round(mean - half, 4), round(mean + half, 4)]}


def load_file(kind, trials, name, **resources):
    return sweep_file(["python3", "/jobs/load.py", f"--kind={kind}"], {"seed": seeds(trials)}, name=name, objective="seconds", **resources)


def pair(a, b, trials, **resources):
    """Two loads side by side, one trial of each at a time."""
    if a == b:
        return [load_file(a, 2 * trials, f"{a} x 2", max_parallel=2, **resources)]
    return [load_file(kind, trials, f"{a} + {b}", max_parallel=1, **resources) for kind in (a, b)]


def pairs(trials=2):
    """Two loads at once: one after the other, by MPS and by time slices while nothing keeps them apart, then as Berth
    decides by what it measured of these."""
    kinds = ["stream", "matmul", "small"]
    forget()
    alone = {kind: run(load_file(kind, 2, kind + " alone", max_parallel=1, gpu_sharing="exclusive")) for kind in kinds}
    rows = []
    for a, b in itertools.combinations_with_replacement(kinds, 2):
        one = sum(min(x["took"] for x in alone[kind]["attempts"]) for kind in (a, b))
        row = {"pair": [a, b], "one_after_the_other": round(trials * one, 2)}
        for mode in ("mps", "time_slicing"):
            forget()
            row[mode] = run(*pair(a, b, trials, gpu_sharing=mode, gpu_memory="8GiB"))
        row["berth"] = run(*pair(a, b, trials, gpu_memory="8GiB"))
        for mode in ("mps", "time_slicing", "berth"):
            row[mode + "_span"] = row[mode]["span"]
        print({k: v for k, v in row.items() if k not in ("mps", "time_slicing", "berth")}, row["berth"]["classes"], flush=True)
        rows.append(row)
    return {"alone": alone, "rows": rows}


def prediction():
    """Nine shapes, six trials each: what was reserved for those of a known shape against what they held."""
    forget()
    values = {"filters": [16, 32, 64], "batch": [32, 128, 512], "rows": [8000]}
    first = run(train(**values, seed=[1]))
    then = run(train(**values, seed=[2, 3, 4, 5, 6, 7]))
    slack = [1 - a["peak_mib"] / a["reserved_mib"] for a in then["attempts"] if a["kind"] == "ok" and a["peak_mib"]]
    return {"first": first, "then": then, "n": len(slack), "median_slack": round(statistics.median(slack), 4),
            "above": sum(s < 0 for s in slack), "worst_slack": round(max(slack), 4)}


def hold_file(mib, seconds, trials, name="hold", **resources):
    command = ["python3", "/jobs/load.py", "--kind=hold", f"--mib={mib}", f"--seconds={seconds}"]
    return sweep_file(command, {"seed": seeds(trials)}, name=name, objective="seconds", **resources)


def filling(mib=1900, hold=40):
    """Trials that hold about 1.8 % of the GPU, a fifth more than it has room for: by Berth, then all at once without it."""
    forget()
    first = run(hold_file(mib, 5, 1, gpu_sharing="time_slicing"))
    device = get("hosts")["data"][0]["devices"][0]
    room = (device["memory_bytes"] - device["headroom_bytes"]) >> 20
    n = math.ceil(1.2 * room / first["attempts"][0]["peak_mib"])
    measured = run(hold_file(mib, hold, 1, cpus=0.2, gpu_sharing="time_slicing"))
    filled = run(hold_file(mib, hold, n, cpus=0.2, gpu_sharing="time_slicing"))
    most = filled["at_once"] * filled["attempts"][-1]["reserved_mib"]
    naive = started_at_once(n, ["python3", "/jobs/load.py", "--kind=hold", f"--mib={mib}", f"--seconds={hold}"], device["id"])
    return {"n": n, "first": first, "measured": measured, "berth": filled, "naive": naive, "room_mib": room, "reserved_share": round(most / room, 4)}


def docker(*args):
    return subprocess.run(["docker", *args], capture_output=True, text=True, check=False)


def started_at_once(n, command, device):
    """Plain docker run of so many containers at once, with growth mode and nothing else: their exit codes."""
    flags = ["--device", f"nvidia.com/gpu={device}", "-e", "TF_FORCE_GPU_ALLOW_GROWTH=true", "--network", "none", "--tmpfs", "/tmp", IMAGE]
    running = [subprocess.Popen(["docker", "run", "--rm", *flags, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(n)]
    codes = [process.wait() for process in running]
    return {"n": n, "ok": codes.count(0), "lost": n - codes.count(0)}


def peers(n=4):
    """A sweep that runs beside what goes wrong; its trials must all end well."""
    return submit(train(seed=list(range(100, 100 + n))))


def beside(*files, then=None):
    """Runs sweeps beside peers. Returns both."""
    began = time.time()
    others = peers()
    while not any(a.get("started_at") for a in pages(f"sweeps/{others}/attempts")):
        time.sleep(0.2)
    sweeps = [submit(file) for file in files]
    if then:
        then(sweeps)
    for sweep in [*sweeps, others]:
        subprocess.run([BERTH, "sweep", "watch", sweep], check=False, capture_output=True)
    return {"sweep": figures(sweeps, began), "peers": figures([others], began)}


def cancel_while_it_runs(sweeps):
    while not any(a.get("state") == "running" for a in pages(f"sweeps/{sweeps[0]}/attempts")):
        time.sleep(0.2)
    time.sleep(8)  # into its training
    berth("sweep", "cancel", sweeps[0])


def hidden_libraries(file):
    script = "import os, sys; os.environ['LD_LIBRARY_PATH'] = '/nowhere'; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return {**file, "command": ["python3", "-c", script, *file["command"][1:]]}


def failures():
    """What goes wrong on a GPU, each beside four trials that must not notice."""
    forget()
    run(train(seed=[1]))  # the peers' shape is known
    total = get("hosts")["data"][0]["devices"][0]["memory_bytes"] >> 20
    small = dict(gpu_sharing="mps")
    out = {
        "too large for the GPU": beside(hold_file(total + 4096, 5, 1, "too large", gpu_memory="2GiB", **small)),
        "no room for cuBLAS": beside(but(train(seed=[1]), "no cuBLAS", gpu_memory="704MiB", **small)),
        "no room for a context": beside(but(train(seed=[1]), "no context", gpu_memory="320MiB", **small)),
        "libraries missing": beside(hidden_libraries(but(train(seed=[1]), "no libraries"))),
        "outgrows its reservation": beside(hold_file(3000, 5, 1, "grows", gpu_memory="1GiB", **small)),
        "canceled by MPS": beside(but(train(seed=[1, 2]), "canceled", **small), then=cancel_while_it_runs),
    }
    forget()
    device = get("hosts")["data"][0]["devices"][0]
    hog = subprocess.Popen(["docker", "run", "--rm", "--name", "hog", "--device", f"nvidia.com/gpu={device['id']}", "-e", "TF_FORCE_GPU_ALLOW_GROWTH=true",
                            IMAGE, "python3", "/jobs/load.py", "--kind=hold", f"--mib={total * 8 // 10}", "--seconds=45"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while get("hosts")["data"][0]["devices"][0]["free_bytes"] >> 20 > total // 4:
        time.sleep(0.5)
        if hog.poll() is not None:
            raise RuntimeError("the hog ended early")
    out["another program takes 80 %"] = {
        "large": run(hold_file(total * 3 // 10, 5, 1, "waits for the hog", gpu_memory=f"{total * 35 // 100}MiB")), "small": run(train(seed=seeds(4)))}
    out["hog exit"] = hog.wait()
    return out


def two():
    """Two GPUs: 48 trials on both against 24 on one; then with one of them cordoned."""
    one, alone = alone_seconds()
    run(train(seed=[1]))
    devices = [d["id"] for d in get("hosts")["data"][0]["devices"]]
    both = run(train(seed=seeds(48)))
    berth("device", "cordon", devices[1], "--reason", "measuring one GPU")
    single = run(train(seed=seeds(48)))
    berth("device", "ready", devices[1])
    spread = {d: sum(a["device"] == d for a in both["attempts"]) for d in devices}
    for row in (both, single):
        row["A"] = round(48 * one / row["to_last_result"], 2)
    return {"alone": alone, "both": both, "one_cordoned": single, "spread": spread, "ratio": round(both["A"] / single["A"], 3)}


EXPERIMENTS = {"packing": packing, "otherwise": otherwise, "default": default_mode, "pairs": pairs, "prediction": prediction, "filling": filling,
               "failures": failures, "two": two}


def main():
    name, out = sys.argv[1], pathlib.Path(sys.argv[2])
    result = EXPERIMENTS[name]()
    result["device"] = get("hosts")["data"][0]["devices"]
    result["version"] = berth("--version").strip()
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
