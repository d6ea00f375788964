"""Compares runs of bench/search by problem and width: medians, A12, and Mann-Whitney's test with Holm's correction."""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable


def ranks(values: list[float]) -> list[float]:
    """Returns the rank of each value from 1, the mean of ranks for equal ones."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            out[i] = (at + end + 1) / 2
        at = end
    return out


def mann_whitney(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """Returns A12, the chance that ours is less, and the two-sided p by the normal approximation with ties."""
    n, m = len(ours), len(theirs)
    both = ours + theirs
    all_ranks = ranks(both)
    greater = sum(all_ranks[:n]) - n * (n + 1) / 2  # pairs in which ours is more
    a12 = 1 - greater / (n * m)
    ties = sum(both.count(value) ** 3 - both.count(value) for value in set(both))
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance == 0:
        return a12, 1.0
    z = max(abs(greater - n * m / 2) - 0.5, 0) / math.sqrt(variance)
    return a12, math.erfc(z / math.sqrt(2))


def holm(ps: Iterable[float]) -> list[float]:
    """Returns the corrected p of each."""
    listed = list(ps)
    out = [0.0] * len(listed)
    most = 0.0
    for i, at in enumerate(sorted(range(len(listed)), key=listed.__getitem__)):
        most = max(most, min(1.0, (len(listed) - i) * listed[at]))
        out[at] = most
    return out


def main() -> None:
    """Reads runs from standard input; the arguments are ours and theirs, such as "berth tpe" optuna."""
    ours, theirs = sys.argv[1:]
    runs: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    cost: dict[str, list[float]] = defaultdict(list)
    for line in sys.stdin:
        run = json.loads(line)
        runs[run["problem"], run["q"]][run["by"]].append(run["full"])
        cost[run["by"]].append(run["seconds"])
    kinds = [kind for kind, by in runs.items() if by[ours] and by[theirs]]
    tests = [mann_whitney(runs[kind][ours], runs[kind][theirs]) for kind in kinds]
    corrected = holm(p for _, p in tests)
    print(f"| problem | at once | runs | {ours} | {theirs} | A12 | p | |\n|---|---|---|---|---|---|---|---|")
    verdicts = defaultdict(int)
    for (problem, q), (a12, _), p in zip(kinds, tests, corrected):
        verdict = "" if p >= 0.05 else "better" if a12 > 0.5 else "worse"
        verdicts[verdict] += 1
        a, b = runs[problem, q][ours], runs[problem, q][theirs]
        medians = f"{statistics.median(a):.5f} | {statistics.median(b):.5f}"
        print(f"| {problem} | {q} | {len(a)} | {medians} | {a12:.2f} | {p:.3f} | {verdict} |")
    print(f"\n{verdicts['better']} better, {verdicts['worse']} worse, {verdicts['']} alike (Holm, 5 %)")
    for by in (ours, theirs):
        print(f"{by}: {1000 * statistics.median(cost[by]):.2f} ms a suggestion")


main()
