"""bench_loop: times sweeps by Berth against a plain loop of `docker run`.

The loop starts the same containers: the flags, network, log driver, init
process, mounts and limits that Berth gives to a trial of a known shape. Rounds
of the loop, of Berth with unknown shapes and of Berth with known shapes take
turns, in an order that rotates, as the speed of a shared machine drifts. How
many containers ran at once is read from their own start and end times, on both
sides, and must be what was asked for.

scripts/bench-overhead and scripts/bench-wide start `berth dev` and call this:
    bench_loop.py overhead|wide ROUNDS PARALLEL
"""

import concurrent.futures
import dataclasses
import datetime
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

BERTH = os.path.join(".build", "berth")
SERVER = os.environ["BERTH_SERVER"]


@dataclasses.dataclass
class Case:
    image: str
    workdir: str
    sweep: str  # the sweep file, as text
    trials: list[list[str]]  # argv of every trial
    environment: dict[str, str]


def digits() -> Case:
    trials = [
        ["python3", "train.py", f"--lr={lr}", f"--batch={batch}", f"--width={width}", f"--optimizer={optimizer}", "--epochs=5"]
        for lr, optimizer, batch, width in itertools.product([0.003, 0.01, 0.03], ["adam", "sgd"], [32, 64], [32, 64])
    ]
    with open("examples/digits/sweep.yaml", encoding="utf-8") as file:
        sweep = file.read()
    caps = {name: "1" for name in (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}
    caps |= {"OMP_WAIT_POLICY": "PASSIVE", "TF_CPP_MIN_LOG_LEVEL": "1", "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    return Case("berth-examples/digits:1", "/app", sweep, trials, caps)


def sleepers(count: int = 96, milliseconds: int = 4000) -> Case:
    sweep = f"""
name: wide
image: berth-test/busy:1
command: [/busy, train, "{milliseconds}", "{{{{n}}}}"]
parameters: [{{name: n, type: int, min: 1, max: {count}, memory: false}}]
search: {{algorithm: grid}}
objective: {{metric: val}}
metrics: {{source: stdout}}
resources: {{cpus: 1}}
"""
    return Case("berth-test/busy:1", "/", sweep, [["/busy", "train", str(milliseconds), str(n)] for n in range(1, count + 1)], {})


def flags(case: Case, scratch: str) -> list[str]:
    """What Berth gives to a container (internal/agent/docker/hostconfig.go)."""
    memory = 1 << 30
    out = [
        "--init", "--network", "none", "--log-driver", "local", "--log-opt", "max-size=10m", "--log-opt", "max-file=3",
        "--log-opt", "mode=non-blocking", "--log-opt", "max-buffer-size=4m", "--memory", str(memory), "--memory-swap", str(memory),
        "--cpu-shares", "1024", "--cpu-period", "100000", "--cpu-quota", "200000", "--pids-limit", "512", "--read-only",
        "--tmpfs", f"/tmp:rw,noexec,nosuid,nodev,mode=1777,size={memory // 2}", "--shm-size", "64m", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--cgroupns", "private", "--ipc", "private", "--ulimit", "core=0:0",
        "--ulimit", "nofile=16384:16384", "--user", "65532:65532", "--hostname", "trial", "--workdir", case.workdir,
    ]
    for target in ("in", "out", "checkpoint"):
        path = os.path.join(scratch, target)
        os.makedirs(path)
        os.chmod(path, 0o777)
        out += ["--mount", f"type=bind,source={path},target=/trial/{target}" + (",readonly" if target == "in" else "")]
    for name, value in case.environment.items():
        out += ["--env", f"{name}={value}"]
    return out


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """The most spans that hold one moment."""
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    return max(itertools.accumulate(step for _, step in edges))


def stamp(text: str) -> float:
    head, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.datetime.fromisoformat(head + "+00:00").timestamp() + float("0." + (fraction or "0"))


def by_loop(case: Case, parallel: int) -> tuple[float, int]:
    """Seconds of all trials by `docker run`, and how many ran at once. Removing is not part of the time."""
    scratch = tempfile.mkdtemp()
    names = [f"bench-loop-{os.getpid()}-{i}" for i in range(len(case.trials))]

    def run(i: int) -> None:
        argv = case.trials[i]
        options = flags(case, os.path.join(scratch, str(i)))
        subprocess.run(["docker", "run", "--name", names[i], *options, "--entrypoint", argv[0], case.image, *argv[1:]],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    try:
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
            list(pool.map(run, range(len(names))))
        seconds = time.monotonic() - began
        states = json.loads(subprocess.run(["docker", "inspect", *names], check=True, capture_output=True).stdout)
        return seconds, most_at_once([(stamp(s["State"]["StartedAt"]), stamp(s["State"]["FinishedAt"])) for s in states])
    finally:
        subprocess.run(["docker", "rm", "--force", *names], check=False, capture_output=True)
        shutil.rmtree(scratch, ignore_errors=True)


def berth(*args: str, stdin: str | None = None) -> str:
    return subprocess.run([BERTH, *args], check=True, capture_output=True, text=True, input=stdin).stdout


def get(path: str) -> dict:
    with urllib.request.urlopen(f"{SERVER}/api/v1/{path}", timeout=30) as answer:
        return json.load(answer)


def forget() -> None:
    for probe in json.loads(berth("probe", "list", "-o", "json")):
        berth("probe", "forget", probe["shape_key"])


def by_berth(case: Case) -> tuple[float, int]:
    """Seconds of a sweep from submitting to its end, and how many containers ran at once."""
    began = time.monotonic()
    sweep = json.loads(berth("sweep", "submit", "-f", "-", "-o", "json", stdin=case.sweep))["id"]
    berth("sweep", "watch", sweep)
    seconds = time.monotonic() - began

    counts = get(f"sweeps/{sweep}")["counts"]
    if counts["succeeded"] != len(case.trials):
        sys.exit(f"not every trial succeeded: {counts}")

    spans, cursor = [], ""
    while True:
        page = get(f"sweeps/{sweep}/attempts?limit=200" + (f"&cursor={cursor}" if cursor else ""))
        spans += [(stamp(a["started_at"]), stamp(a["finished_at"])) for a in page["data"]]
        cursor = page.get("next_cursor")
        if not cursor:
            return seconds, most_at_once(spans)


def main() -> None:
    kind, rounds, parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    case = {"overhead": digits, "wide": sleepers}[kind]()
    sides = {
        "loop": lambda: by_loop(case, parallel),
        "unknown": lambda: (forget(), by_berth(case))[1],
        "known": lambda: by_berth(case),
    }
    by_loop(dataclasses.replace(case, trials=case.trials[:parallel]), parallel)  # warms the caches
    sides["unknown"]()  # the footprints that "known" needs when it comes first

    ratios: dict[str, list[float]] = {"unknown": [], "known": []}
    for round_number in range(rounds):
        order = list(sides)[round_number % 3:] + list(sides)[:round_number % 3]
        seconds = {}
        for side in order:
            seconds[side], at_once = sides[side]()
            if at_once != parallel:
                sys.exit(f"{side}: {at_once} containers ran at once, not {parallel}: the sides are not alike")
        for side, values in ratios.items():
            values.append(seconds[side] / seconds["loop"])
        print(f"round {round_number + 1}: " + ", ".join(f"{side} {seconds[side]:.1f} s" for side in sides) +
              "".join(f"; {side}/loop {values[-1]:.3f}" for side, values in ratios.items()), flush=True)

    for side, values in ratios.items():
        print(f"{kind}: Berth with {side} shapes / docker run loop = {statistics.median(values):.3f} "
              f"(median of {rounds}, {min(values):.3f} to {max(values):.3f}; {len(case.trials)} trials, {parallel} at once on both sides)")


if __name__ == "__main__":
    main()
