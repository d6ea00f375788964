"""measure: experiments with a GPU, each through a running Berth.

    measure.py EXPERIMENT[:PART] OUT     writes OUT/EXPERIMENT-PART.json

bench/gpu/run starts Berth and calls this; bench/gpu/plot draws the files.
"""

import concurrent.futures
import contextlib
import itertools
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

from harness import IMAGE, begin, berth, but, devices, figures, forget, get, own_mps, pages, run, save, smi, submit, sweep_file, watch, without_berth


def train(**values):
    return sweep_file(["python3", "/jobs/train.py"], values)


WORK = {"stream": 1.1, "l2": 5.0, "matmul": 1.6, "small": 1.5}  # about 8 s alone, of a container that takes 4 s to start


def load_file(kind, trials, name, part=1.0, **resources):
    return sweep_file(["python3", "/jobs/load.py", f"--kind={kind}", f"--work={WORK[kind] * part:.2f}"], {"seed": seeds(trials)}, name=name, objective="seconds", **resources)


def hold_file(mib, seconds, trials, name="hold", **resources):
    command = ["python3", "/jobs/load.py", "--kind=hold", f"--mib={mib}", f"--seconds={seconds}"]
    return sweep_file(command, {"seed": seeds(trials)}, name=name, objective="seconds", **resources)


def seeds(n):
    return list(range(1, n + 1))


def packed(out, rows):
    """Runs one shape several times: name, trials and what to change of the sweep file."""
    for name, n, changes in rows:
        out[name] = {"n": n, **run(but(train(seed=seeds(n)), "gpu", **changes))}


def packing(out, _):
    """Alone, then as Berth decides: from nothing, and with a known shape. Then by time slices. About 8 minutes."""
    forget()
    out["alone"] = run(but(train(seed=seeds(4)), "alone", max_parallel=1, gpu_sharing="exclusive"))
    forget()
    packed(out, [("unknown", 72, {}), ("known", 48, {}), ("time slices", 24, {"gpu_sharing": "time_slicing"}),
                 ("time slices, 4", 8, {"gpu_sharing": "time_slicing", "max_parallel": 4})])


def script(out, _, trials=72, at_once=24):
    """A script that keeps 24 `docker run` going under MPS, with the hardening and the thread caps of Berth's containers and no
    CPU quota. Then Berth, the shape unknown and known: seconds to the last result of 72 trials. About 7 minutes."""
    forget()
    run(but(train(seed=[0], rows=[1000]), "fills the caches"))
    device = devices()[0]["id"]
    threads = [f"-e{name}=1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")]
    hardening = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--ipc=private", "--init", "--pids-limit=4096", "--memory=4g", *threads]
    with own_mps(device) as client, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        began = time.time()
        commands = [without_berth(device, "python3", "/jobs/train.py", f"--seed={seed}", flags=[*hardening, *client]) for seed in seeds(trials)]
        codes = list(pool.map(lambda command: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode, commands))
        out["script"] = {"to_last_result": round(time.time() - began, 2), "ok": codes.count(0)}
    print(out["script"], flush=True)
    save()
    for name in ("unknown", "known"):
        out[name] = run(but(train(seed=seeds(trials)), name))
        out[name]["ratio"] = round(out[name]["to_last_result"] / out["script"]["to_last_result"], 3)
        print(name, out[name]["to_last_result"], out[name]["ratio"], flush=True)


def three(out, _):
    """Three sweeps at once, nothing known: four small shapes, a large one of 8 trials, and 12 small trials. About 2 minutes."""
    forget()
    run(but(train(seed=[0], rows=[1000]), "fills the caches"))
    forget()
    large = hold_file(8000, 15, 8, "large")
    out["three"] = run(but(train(seed=seeds(6), filters=[32, 64], batch=[32, 128]), "four shapes"), large, hold_file(400, 15, 12, "small"))
    out["out_of_memory"] = out["three"]["outcomes"].get("device_oom", 0)
    out["large_done"] = max(a["start"] + a["took"] for a in out["three"]["attempts"] if a["peak_mib"] > 8000)
    out["large_alone"] = run(hold_file(8000, 15, 1, "large, alone"))["to_last_result"]
    print({key: out[key] for key in ("out_of_memory", "large_done", "large_alone")}, flush=True)


def otherwise(out, part):
    """What Berth did not choose. PART: names of these, with + between them. About 8 minutes."""
    forget()
    rows = [("probe", 1, {}), ("MPS, 4", 8, {"max_parallel": 4}), ("MPS, 12", 12, {"max_parallel": 12}), ("MPS, 40", 40, {"cpus": 0.4}),
                 ("time slices, 12", 12, {"max_parallel": 12, "gpu_sharing": "time_slicing"}), ("time slices, 40", 40, {"cpus": 0.4, "gpu_sharing": "time_slicing"})]
    packed(out, [row for row in rows if not part or row[0] in part.split("+")])


def default_mode(out, _, pairs=8):
    """TensorFlow's default mode against growth, alone on the GPU, in turns. About 5 minutes."""
    forget()
    out.update(growth=[], default=[])
    with smi(devices()[0]["id"]) as utilisation:
        for pair in range(pairs + 1):
            for mode in (("growth", "default"), ("default", "growth"))[pair % 2]:
                file = but(train(seed=[pair], rows=[8000]), mode, gpu_sharing="exclusive")
                if mode == "default":
                    file["command"] = [*file["command"], "--default-mode"]
                utilisation()
                attempt = {**run(file)["attempts"][0], "utilisation": utilisation()}
                if pair > 0:  # the first pair fills the caches
                    out[mode].append(attempt)


def pair(a, b, trials, **resources):
    """Two loads side by side, one trial of each at a time."""
    if a == b:
        return [load_file(a, 2 * trials, f"{a} x 2", max_parallel=2, **resources)]
    return [load_file(kind, trials, f"{a} + {b}", max_parallel=1, **resources) for kind in (a, b)]


def pairs_of(part):
    """PART n/m is every m-th pair of loads from the n-th on; all without."""
    first, step = (int(n) for n in (part or "0/1").split("/"))
    return list(itertools.combinations_with_replacement(["stream", "l2", "matmul", "small"], 2))[first::step]


def pairs(out, part, trials=2):
    """Two loads at once: by MPS and by time slices with nothing known, then as Berth decides by its measurements of
    these. PART as of pairs_of. About 2 minutes a pair."""
    chosen = pairs_of(part)
    forget()
    run(load_file("small", 1, "fills the caches"))
    kinds = sorted({kind for both in chosen for kind in both})
    out.update(alone={kind: run(load_file(kind, 1, kind + " alone", gpu_sharing="exclusive")) for kind in kinds}, rows=[])
    for both in chosen:
        row = {"pair": both}
        out["rows"].append(row)
        for mode in ("mps", "time_slicing"):
            forget()
            row[mode] = run(*pair(*both, trials, gpu_sharing=mode, gpu_memory="8GiB"))
        row["berth"] = run(*pair(*both, trials, gpu_memory="8GiB"))
        print(both, {mode: row[mode]["span"] for mode in ("mps", "time_slicing", "berth")}, row["berth"]["classes"], flush=True)


def decisions(out, part, trials=14):
    """Two loads at once, trials enough for Berth to try both modes by itself: its advice, and its final choice. PART as of
    pairs_of. About 2 minutes a pair."""
    out["rows"] = []
    for both in pairs_of(part):
        forget()
        row = {"pair": both, "said": []}
        out["rows"].append(row)
        began = time.time()
        sweeps = [submit(file) for file in pair(*both, trials, part=0.5, gpu_memory="8GiB")]
        while any(get(f"sweeps/{sweep}")["state"] in ("pending", "running") for sweep in sweeps):
            advice = devices()[0].get("advice")
            if advice and advice not in row["said"]:
                row["said"].append(advice)
            time.sleep(0.5)
        row["berth"] = figures(sweeps, began)


def prediction(out, _):
    """Sixteen shapes, four trials at once (on an empty card all would be measured at once): those that were measured predict
    the others (.build/bench-memory). About 4 minutes."""
    forget()
    run(but(train(seed=[0], rows=[1000]), "fills the caches"))
    file = train(batch=[32, 64, 128, 256], filters=[16, 32, 64, 128], rows=[4000], epochs=[2])
    file["parameters"].append({"name": "lr", "min": 1e-5, "max": 1e-2, "log": True, "memory": False})
    file["command"].append("--lr={{lr}}")
    file.update(name="prediction", search={"algorithm": "auto", "startup": 32}, limits={**file["limits"], "max_trials": 40, "max_parallel": 4})
    watcher = subprocess.Popen([".build/bench-memory", "-server", os.environ["BERTH_SERVER"], "-sweep", "prediction", "-numbers", "batch,filters"],
                               stdout=subprocess.PIPE, text=True)
    out["auto"] = run(file)
    report, _ = watcher.communicate()
    if watcher.returncode:
        sys.exit("bench-memory failed")
    out["report"] = report.splitlines()
    print(report, flush=True)


def stages(out, _):
    """Twenty-four heads on a frozen ResNet50 that they share, against eight that each run it themselves, eight at once.
    About 4 minutes."""
    forget()
    rates = [round(0.0003 * 1.2 ** n, 6) for n in range(24)]
    file = sweep_file(["python3", "/jobs/heads.py"], {"lr": rates}, "heads", max_parallel=8)
    file["parameters"][0]["memory"] = False
    alone = {**file, "name": "alone", "parameters": [{**file["parameters"][0], "values": rates[::3]}], "limits": {**file["limits"], "max_trials": 8}}
    out["alone"] = run(alone)
    out["staged"] = run({**file, "stages": [{"name": "features", "parameters": []}]})
    out["again"] = run({**file, "name": "again", "stages": [{"name": "features", "parameters": []}], "parameters": [{**file["parameters"][0], "values": [r * 1.01 for r in rates]}]})
    values = {name: {a["value"] for a in out[name]["attempts"] if a["value"] is not None} for name in ("alone", "staged")}
    out["equal_values"] = [len(values["alone"] & values["staged"]), len(values["alone"])]
    for what, cost in (("container", lambda a: a["took"]), ("busy", lambda a: a["took"] * a["activity"]["sm_milli"] / 1000)):
        each = {name: sum(map(cost, out[name]["attempts"])) / n for name, n in (("alone", 8), ("staged", 24), ("again", 24))}
        out[what + "_seconds"] = {**{name: round(value, 2) for name, value in each.items()}, "ratio": round(each["staged"] / each["alone"], 3)}
        print(what, out[what + "_seconds"], flush=True)
    print("equal values", out["equal_values"], flush=True)


def filling(out, part, mib=1900, hold=40):
    """Trials that hold about 1.8 % of the GPU, a fifth more than it has room for: by Berth, then all at once without it.
    PART naive: only that."""
    forget()
    first = run(hold_file(mib, 5, 1, gpu_sharing="time_slicing"))
    device = devices()[0]
    out["room_mib"] = (device["memory_bytes"] - device["headroom_bytes"]) >> 20
    n = out["n"] = math.ceil(1.2 * out["room_mib"] / first["attempts"][0]["peak_mib"])
    if part != "naive":
        run(hold_file(mib, hold, 1, cpus=0.2, gpu_sharing="time_slicing"))
        out["berth"] = run(hold_file(mib, hold, n, cpus=0.2, gpu_sharing="time_slicing"))
        save()
    out["naive"] = started_at_once(n, ["python3", "/jobs/load.py", "--kind=hold", f"--mib={mib}", f"--seconds={hold}"], device["id"])


def started_at_once(n, command, device):
    """Plain docker run of this many containers at once: their exit codes."""
    running = [subprocess.Popen(without_berth(device, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(n)]
    codes = [process.wait() for process in running]
    return {"n": n, "ok": codes.count(0), "lost": n - codes.count(0)}


def beside(*files, then=None):
    """Runs sweeps beside four trials that must all end well. Returns both."""
    began = time.time()
    peers = submit(train(seed=list(range(100, 104))))
    while not any(a.get("started_at") for a in pages(f"sweeps/{peers}/attempts")):
        time.sleep(0.2)
    sweeps = [submit(file) for file in files]
    if then:
        then(sweeps)
    watch(*sweeps, peers)
    return {"sweep": figures(sweeps, began), "peers": figures([peers], began)}


def cancel_while_it_runs(sweeps):
    while not any(a.get("state") == "running" for a in pages(f"sweeps/{sweeps[0]}/attempts")):
        time.sleep(0.2)
    time.sleep(8)  # into its training
    berth("sweep", "cancel", sweeps[0])


def hidden_libraries(file):
    script = "import os, sys; os.environ['LD_LIBRARY_PATH'] = '/nowhere'; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    return {**file, "command": ["python3", "-c", script, *file["command"][1:]]}


def failures(out, part):
    """What goes wrong on a GPU, each beside four trials that must not notice. PART: numbers of these, with commas."""
    forget()
    run(train(seed=[1]))  # the peers' shape is known
    total = devices()[0]["memory_bytes"] >> 20
    small = dict(gpu_sharing="mps")
    rows = [
        ("too large for the GPU", lambda: beside(hold_file(total + 4096, 5, 1, "too large", gpu_memory="2GiB", **small))),
        ("no room for cuBLAS", lambda: beside(but(train(seed=[1]), "no cuBLAS", gpu_memory="704MiB", **small))),
        ("no room for a context", lambda: beside(but(train(seed=[1]), "no context", gpu_memory="320MiB", **small))),
        ("outgrows its reservation", lambda: beside(hold_file(3000, 5, 1, "grows", gpu_memory="1GiB", **small))),
        ("canceled by MPS", lambda: beside(but(train(seed=[1, 2]), "canceled", **small), then=cancel_while_it_runs)),
        ("libraries missing", lambda: beside(hidden_libraries(but(train(seed=[1], rows=[1000]), "no libraries")))),
        ("libraries missing, device: auto", lambda: beside(hidden_libraries(but(train(seed=[1], rows=[1000]), "no libraries", device="auto")))),
        ("another program takes 80 %", lambda: another_program(total)),
    ]
    for n, (name, do) in enumerate(rows):
        if not part or str(n) in part.split(","):
            out[name] = do()


def another_program(total):
    """A large trial waits for a program that is not Berth's, small ones run beside it."""
    device = devices()[0]["id"]
    command = without_berth(device, "python3", "/jobs/load.py", "--kind=hold", f"--mib={total * 8 // 10}", "--seconds=45")
    hog = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while devices()[0]["free_bytes"] >> 20 > total // 4:
        time.sleep(0.5)
        if hog.poll() is not None:
            raise RuntimeError("the other program ended early: " + hog.stderr.read()[-500:])
    began = time.time()
    large, small = submit(hold_file(total * 3 // 10, 5, 1, "waits", gpu_memory=f"{total * 35 // 100}MiB")), submit(train(seed=seeds(4)))
    time.sleep(5)  # a few rounds of placement
    why = [w["reason"] for w in get(f"sweeps/{large}/trials/1").get("waiting", [])]
    code = hog.wait()
    ended = round(time.time() - began, 2)
    watch(large, small)
    return {"hog": {"exit": code, "ended": ended}, "why": why, "large": figures([large], began), "small": figures([small], began)}


def mps_daemons():
    """The pipe directories of the MPS daemons on this machine."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended
            if (process / "comm").read_text().startswith("nvidia-cuda-mps"):
                environment = (process / "environ").read_bytes().split(b"\0")
                found += [f"{(process / 'comm').read_text().strip()} {e.decode()}" for e in environment if e.startswith(b"CUDA_MPS_PIPE_DIRECTORY=")]
    return sorted(found)


def beside_file(kind, trials, name, grow=0, ends_after=0, limit=None, **resources):
    """Trials that compute until something ends them. torch, jax and cupy are of the data set "torch"."""
    resources = {"gpu_memory": "4GiB", "gpu_sharing": "mps", "cpus": 0.5, **resources}
    file = sweep_file(["python3", "/jobs/beside.py", f"--kind={kind}", f"--grow={grow}", f"--rounds={ends_after}"], {"seed": seeds(trials)}, name=name, objective="rounds", **resources)
    if kind in ("torch", "jax", "cupy"):
        file["command"][0] = "/opt/torch/.venv/bin/python3"
        file["datasets"] = [{"name": "torch", "target": "/opt/torch"}]
        file["environment_variables"] = {"PYTHONPATH": "", "CUPY_CACHE_DIR": "/tmp/cupy"}
    if limit:
        file["limits"]["max_trial_duration"] = limit
    return file


def rounds(sweep):
    """The last round that each trial of a sweep has reported."""
    return [curve["values"][-1] for curve in get(f"sweeps/{sweep}/metrics?name=rounds&trials=1-12")["data"] if curve["values"]]


def neighbours(out, part):
    """Six trials that check their sums; beside them others end while they compute: canceled, past their time limit,
    outgrowing their host memory. Needs `--dataset torch=DIR` for torch, jax and cupy. PART: the kinds to cancel, with
    commas. About 6 minutes."""
    forget()
    peers = submit(beside_file("sums", 6, "sums"))
    while len(rounds(peers)) < 6:
        time.sleep(0.2)

    out["rows"] = []
    kinds = part.split(",") if part else ["keras", "keras", "tf", "torch", "jax", "cupy"]
    ends = [(kind, 8, "canceled", {}) for kind in kinds]
    for kind, trials, how, changes in [*ends, ("tf", 6, "time limit", {"limit": "40s"}), *[("tf", 6, "host memory", {"grow": 200, "ends_after": 8, "memory": "2GiB"})] * 2]:
        sweep = submit(beside_file(kind, trials, f"{kind}, {how}", **changes))
        began = time.time()
        if how == "canceled":
            while len(rounds(sweep)) < trials and get(f"sweeps/{sweep}")["state"] in ("pending", "running"):
                time.sleep(0.2)
            time.sleep(2)
            began = time.time()
            berth("sweep", "cancel", sweep)
        watch(sweep)
        row = {"kind": kind, "how": how, "rounds": rounds(sweep), **figures([sweep], began)}
        row["ended_after"] = sorted(round(a["start"] + a["took"], 1) for a in row["attempts"])
        row["neighbours"] = [(a["number"], a["state"], a.get("message", "")) for a in pages(f"sweeps/{peers}/attempts")]
        out["rows"].append(row)
        print(kind, how, row["ended_after"], row["rounds"], row["messages"], row["neighbours"], flush=True)

    out["checks"] = [100 * n for n in rounds(peers)]
    print("checked sums", out["checks"], flush=True)
    berth("sweep", "cancel", peers)
    watch(peers)


def two(out, part):
    """Two GPUs: PART trials (96) on both; then twelve while one is cordoned. About 4 minutes."""
    forget()
    out["probe"] = run(train(seed=[1]))
    out["both"] = run(train(seed=seeds(int(part or 96))))
    out["mps"] = mps_daemons()
    berth("device", "cordon", devices()[1]["id"], "--reason", "measuring one GPU")
    out["one cordoned"] = run(train(seed=seeds(12)))
    berth("device", "ready", devices()[1]["id"])


def spill(out, _):
    """A trial that says it needs more than the GPU has, and holds less: alone, in unified memory, beside none of the others."""
    forget()
    run(train(seed=[1]))
    total = devices()[0]["memory_bytes"] >> 20
    others = train(seed=seeds(4))
    spilled = hold_file(4096, 5, 1, "spills", gpu_memory=f"{total + 8192}MiB", gpu_memory_spill=True)
    began = time.time()
    sweeps = [submit(spilled), submit(others)]
    watch(*sweeps)
    out.update(spilled=figures(sweeps[:1], began), others=figures(sweeps[1:], began))


def starts(out, _, n=12):
    """docker run of next to nothing, with and without a GPU, in turns: seconds each."""
    device = devices()[0]["id"]
    out.update({"with a GPU": [], "without": []})
    for _ in range(n + 1):
        for name, flags in (("with a GPU", ["--device", f"nvidia.com/gpu={device}"]), ("without", [])):
            began = time.time()
            subprocess.run(["docker", "run", "--rm", "--network", "none", *flags, IMAGE, "python3", "-S", "-c", ""], check=True)
            out[name].append(round(time.time() - began, 3))
    for name in ("with a GPU", "without"):
        out[name] = out[name][1:]
        print(name, statistics.median(out[name]), flush=True)


EXPERIMENTS = {"packing": packing, "script": script, "three": three, "otherwise": otherwise, "default": default_mode, "pairs": pairs, "decisions": decisions, "prediction": prediction, "stages": stages, "filling": filling,
               "failures": failures, "neighbours": neighbours, "two": two, "spill": spill, "starts": starts}


def main():
    name, _, part = sys.argv[1].partition(":")
    file = sys.argv[1].translate(str.maketrans(":/,+ ", "-----")) + ".json"
    EXPERIMENTS[name](begin(pathlib.Path(sys.argv[2]) / file), part)
    save()


if __name__ == "__main__":
    main()
