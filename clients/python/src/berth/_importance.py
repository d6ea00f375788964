"""How much each parameter decides the value: PED-ANOVA, as the web interface computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEAST_TRIALS = 20  # with fewer, chance alone makes parameters look important
BEST = 0.25  # the part of trials that is compared with all
GROUPS = 4  # of about the same size, of numbers with more distinct values
ROUNDING = 1e-9


def importances(
    trials: Sequence[tuple[Mapping[str, Any], float]], maximizes: bool, names: Sequence[str]
) -> dict[str, float]:
    """Returns the share of each parameter, 0 to 1, the most important first.

    ``trials`` are params with value. Of the groups of a parameter's values, with parts a of all trials and b of the
    best quarter, the score is the Pearson divergence, the sum of (b - a)^2 / a, less its mean by chance
    (Watanabe et al., IJCAI 2023; frontend/src/lib/overview/importance.ts has the figures).
    """
    order = sorted(trials, key=lambda trial: trial[1], reverse=maximizes)
    scores = {}
    for name in names:
        have = [(params[name], value) for params, value in order if name in params]
        scores[name] = _score(have) if len(have) >= LEAST_TRIALS else 0.0
    total = sum(scores.values()) or 1.0
    return {name: score / total for name, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))}


def _score(order: Sequence[tuple[Any, float]]) -> float:
    n, m = len(order), max(1, round(BEST * len(order)))
    last = order[m - 1][1]
    better = next(i for i, (_, value) in enumerate(order) if value == last)
    tied = sum(value == last for _, value in order)
    shared = (m - better) / tied  # the weight of each that is as good as the last of the best
    counts: dict[Any, int] = {}
    best: dict[Any, float] = {}
    for i, group in enumerate(_groups([value for value, _ in order])):
        counts[group] = counts.get(group, 0) + 1
        best[group] = best.get(group, 0.0) + (1 if i < better else shared if i < better + tied else 0)
    divergence = sum((best[group] / m - count / n) ** 2 / (count / n) for group, count in counts.items())
    squares = better + tied * shared**2
    score = divergence - (len(counts) - 1) / m**2 * (n * squares - m**2) / (n - 1)
    return score if score > ROUNDING else 0.0


def _groups(values: Sequence[Any]) -> list[Any]:
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return [str(value) for value in values]
    if len(set(values)) <= GROUPS:
        return list(values)
    below: dict[float, int] = {}
    for i, value in enumerate(sorted(values)):
        below.setdefault(value, i)
    return [GROUPS * below[value] // len(values) for value in values]
