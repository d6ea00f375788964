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


def run(file):
    """Runs a sweep to its end. Returns its figures."""
    began = time.time()
    sweep = json.loads(berth("sweep", "submit", "-f", "-", "-o", "json", stdin=json.dumps(file)))["id"]
    berth("sweep", "watch", sweep)
    took = time.time() - began

    attempts, cursor = [], ""
    while True:
        page = get(f"sweeps/{sweep}/attempts?limit=200" + (f"&cursor={cursor}" if cursor else ""))
        attempts += page["data"]
        cursor = page.get("next_cursor", "")
        if not cursor:
            break

    started = [a for a in attempts if a.get("started_at")]
    edges = sorted([(seconds(a["started_at"]), 1) for a in started] + [(seconds(a["finished_at"]), -1) for a in started])
    kinds = [a.get("failure_kind", "") for a in attempts]
    out = {
        "sweep": sweep, "seconds": round(took, 2), "trials": file["limits"]["max_trials"],
        "to_last_result": round(max(seconds(a["finished_at"]) for a in started) - began, 2),
        "at_once": max(itertools.accumulate(step for _, step in edges)),
        "outcomes": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "classes": sorted({a.get("device_class", "") for a in started}),
        "attempts": [
            {
                "trial": a["trial_number"], "shape": a["shape_key"][:8], "kind": a.get("failure_kind", ""), "class": a.get("device_class", ""),
                "start": round(seconds(a["started_at"]) - began, 2), "took": round(seconds(a["finished_at"]) - seconds(a["started_at"]), 2),
                "reserved_mib": a["demand"].get("device_bytes", 0) >> 20, "peak_mib": a["usage"].get("device_peak_bytes", 0) >> 20,
                "activity": a["usage"]["device_activity"], "cpu_seconds": a["usage"]["cpu_seconds"], "value": a.get("value"),
                **({"message": a["message"]} if a.get("failure_kind") != "ok" else {}),
            }
            for a in sorted(started, key=lambda a: a["started_at"])
        ],
        "report": get(f"sweeps/{sweep}/report?limit=1")["notes"],
    }
    print(json.dumps({k: v for k, v in out.items() if k not in ("attempts", "report")}), flush=True)
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


def pair_file(kinds, **resources):
    """One trial of each kind, at once."""
    return sweep_file(["python3", "/jobs/load.py"], {"kind": sorted(set(kinds)), "seed": seeds(1 if len(set(kinds)) == 2 else 2)},
                      name="+".join(kinds), objective="seconds", **resources)


def pairs():
    """Two loads at once: by time slices and by MPS with nothing known, then as Berth decides by what it measured."""
    kinds = ["stream", "matmul", "small"]
    forget()
    alone = {kind: run(but(pair_file([kind, kind]), kind + " alone", max_parallel=1, gpu_sharing="exclusive")) for kind in kinds}
    rows = []
    for a, b in itertools.combinations_with_replacement(kinds, 2):
        row = {"pair": [a, b], "alone": [min(x["value"] for x in alone[kind]["attempts"]) for kind in (a, b)]}
        row["berth"] = run(pair_file([a, b]))
        rows.append(row)
    forget()
    for row in rows:  # insisting, with guesses instead of measurements: nothing keeps the two apart
        row["mps"] = run(pair_file(row["pair"], gpu_sharing="mps", gpu_memory="8GiB"))
        row["time_slicing"] = run(pair_file(row["pair"], gpu_sharing="time_slicing", gpu_memory="8GiB"))
        forget()
    for row in rows:
        for mode in ("berth", "mps", "time_slicing"):
            busy = row[mode]["attempts"]
            span = max(x["start"] + x["took"] for x in busy) - min(x["start"] for x in busy)
            row[mode + "_span"], row[mode + "_values"] = round(span, 2), [x["value"] for x in busy]
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


def filling(mib=2000, hold=45):
    """Trials that hold about 1.8 % of the GPU, a fifth more than it has room for."""
    forget()
    command = ["python3", "/jobs/load.py", "--kind=hold", f"--mib={mib}", f"--seconds={hold}"]
    resources = {"objective": "seconds", "gpu_sharing": "time_slicing", "cpus": 0.25}
    first = run(sweep_file(command, {"seed": [0]}, **resources))
    device = get("hosts")["data"][0]["devices"][0]
    room = (device["memory_bytes"] - device["headroom_bytes"]) >> 20
    n = math.ceil(1.2 * room / (1.1 * first["attempts"][0]["peak_mib"]))
    filled = run(sweep_file(command, {"seed": seeds(n)}, **resources))
    most = filled["at_once"] * filled["attempts"][-1]["reserved_mib"]
    return {"n": n, "first": first, "berth": filled, "room_mib": room, "reserved_share": round(most / room, 4)}


EXPERIMENTS = {"packing": packing, "otherwise": otherwise, "default": default_mode, "pairs": pairs, "prediction": prediction, "filling": filling}


def main():
    name, out = sys.argv[1], pathlib.Path(sys.argv[2])
    result = EXPERIMENTS[name]()
    result["device"] = get("hosts")["data"][0]["devices"]
    result["version"] = berth("--version").strip()
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
