"""plot: draws what measure.py wrote.

    plot.py OUT PREFIX     writes PREFIX-packing.svg and PREFIX-filling.svg, as far as OUT has their figures,
                           and PREFIX.json: the figures of all experiments, a row for each attempt

Needs matplotlib; bench/gpu/plot installs it.
"""

import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

COLORS = {"MPS": "#0b6e4f", "time slices": "#c8553d"}


def figures(out, name):
    file = out / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def over_time(attempts, value):
    """The sum of a value over the attempts that run, as steps: times and sums."""
    edges = sorted([(a["start"], value(a)) for a in attempts] + [(a["start"] + a["took"], -value(a)) for a in attempts])
    times, sums = [0], [0]
    for at, change in edges:
        times.append(at)
        sums.append(sums[-1] + change)
    return times, sums


def packing(out):
    """The aggregate speed-up by how many ran at once, in each mode, and what Berth chose."""
    rows = {**figures(out, "packing"), **figures(out, "otherwise")}
    if "alone" not in rows:
        return None
    alone = statistics.mean(a["took"] for a in rows["alone"]["attempts"][1:])
    points = {"MPS": [], "time slices": []}
    fig, ax = plt.subplots(figsize=(6.4, 4))
    for name, row in rows.items():
        if name in ("alone", "probe") or "to_last_result" not in row:
            continue
        mode = "MPS" if "(MPS)" in row["classes"][0] else "time slices"
        point = (row["at_once"], row["n"] * alone / row["to_last_result"])
        points[mode].append(point)
        if name in ("unknown", "known"):
            ax.annotate("Berth's choice" + (", probe included" if name == "unknown" else ""), point, xytext=(-8, 0), textcoords="offset points", ha="right", va="center", fontsize=8)
    for mode, values in points.items():
        best = sorted({n: max(a for m, a in values if m == n) for n, _ in values}.items())
        ax.plot(*zip(*best), label=mode, color=COLORS[mode])
        ax.plot(*zip(*values), "o", color=COLORS[mode])
    ax.set(xlabel="trials at once, at most", ylabel="aggregate speed-up A", xlim=(0, None), ylim=(0, None))
    ax.legend(loc="lower right")
    return fig


def filling(out):
    """The memory reserved and held, over the time of the sweep that fills the GPU."""
    rows = figures(out, "filling")
    if "berth" not in rows:
        return None
    attempts = rows["berth"]["attempts"]
    fig, ax = plt.subplots(figsize=(6.4, 4))
    for label, key, color in (("reserved", "reserved_mib", "#0b6e4f"), ("held, at each trial's peak", "peak_mib", "#7a9e7e")):
        times, sums = over_time(attempts, lambda a, key=key: a[key] / 1024)
        ax.step(times, sums, where="post", label=label, color=color)
    ax.axhline(rows["room_mib"] / 1024, color="#c8553d", linestyle="--", label="room: the GPU less its headroom")
    ax.set(xlabel="seconds since submission", ylabel="GiB of the GPU", xlim=(0, None), ylim=(0, None))
    ax.legend(loc="center right")
    return fig


def shorter(value):
    """The same figures without what repeats: a list of attempts as a table, no messages that went well."""
    if isinstance(value, list) and value and all(isinstance(v, dict) and "trial" in v for v in value):
        columns = [k for k in value[0] if k != "message"]
        return {"columns": columns, "rows": [[a[k] for k in columns] for a in value]}
    if isinstance(value, dict):
        return {k: shorter(v) for k, v in value.items() if k not in ("notes", "device", "version")}
    return [shorter(v) for v in value] if isinstance(value, list) else value


def together(out):
    """All experiments, a line for each."""
    lines = [f" {json.dumps(f.stem)}: {json.dumps(shorter(json.loads(f.read_text())), separators=(',', ':'))}" for f in sorted(out.glob("*.json"))]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    out, prefix = pathlib.Path(sys.argv[1]), sys.argv[2]
    matplotlib.rcParams.update({"svg.hashsalt": "berth", "axes.spines.top": False, "axes.spines.right": False})
    pathlib.Path(f"{prefix}.json").write_text(together(out))
    for draw in (packing, filling):
        if fig := draw(out):
            fig.tight_layout()
            fig.savefig(f"{prefix}-{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
