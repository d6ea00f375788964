"""Charts of sweeps and trials, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from berth import models
from berth._errors import NoResultError

try:
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError("this needs matplotlib: pip install matplotlib") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from berth._sweep import Sweep

WIDTH, HEIGHT = 8.0, 4.0


def _axes(ax: Optional[Axes]) -> Axes:
    if ax is None:
        _, ax = plt.subplots(figsize=(WIDTH, HEIGHT), layout="constrained")
    return ax


def _valued(sweep: Sweep) -> list[tuple[models.Trial, float]]:
    """Returns the trials with a value, by number."""
    return [(trial.data, trial.value) for trial in sweep.trials if trial.value is not None]


def plot_history(sweep: Sweep, ax: Optional[Axes]) -> Axes:
    """Draws the values by number, and the best so far."""
    ax = _axes(ax)
    trials = _valued(sweep)
    best: list[float] = []
    for _, value in trials:
        better = max if sweep.maximizes else min
        best.append(value if not best else better(best[-1], value))
    numbers = [trial.number for trial, _ in trials]
    ax.scatter(numbers, [value for _, value in trials], s=16, alpha=0.7, label="trial")
    ax.step(numbers, best, where="post", color="C3", label="best so far")
    ax.set(xlabel="trial", ylabel=sweep.metric or "value", title=f"{sweep.name} {sweep.id[:8]}")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if trials:
        ax.legend()
    return ax


def plot_parallel(sweep: Sweep, ax: Optional[Axes]) -> Axes:
    """Draws each trial as a line over an axis for each parameter and one for the value."""
    ax = _axes(ax)
    trials = sorted(_valued(sweep), key=lambda pair: pair[1], reverse=not sweep.maximizes)  # the best on top
    logs = {p["name"] for p in sweep.spec.get("parameters", []) if p.get("log")}
    names = list(dict.fromkeys(name for trial, _ in trials for name in trial.params))
    scales = [_Scale(name, [trial.params.get(name) for trial, _ in trials], name in logs) for name in names]
    scales = [scale for scale in scales if scale.varies]
    scales.append(_Scale(sweep.metric or "value", [value for _, value in trials], log=False))
    colors = plt.get_cmap("viridis")
    for trial, value in trials:
        heights = [scale.at(trial.params.get(scale.name)) for scale in scales[:-1]] + [scales[-1].at(value)]
        ax.plot(range(len(scales)), heights, color=colors(heights[-1]), alpha=0.7, linewidth=1.2)
    for i, scale in enumerate(scales):
        ax.axvline(i, color="0.6", linewidth=0.8, zorder=0)
        for height, text in scale.ticks():
            ax.annotate(text, (i, height), textcoords="offset points", xytext=(4, -3), fontsize=8)
    ax.set_xticks(range(len(scales)), [scale.name for scale in scales])
    ax.set(yticks=[], ylim=(-0.05, 1.05), xlim=(-0.2, len(scales) - 0.4), title=f"{sweep.name} {sweep.id[:8]}")
    return ax


def plot_importance(sweep: Sweep, ax: Optional[Axes]) -> Axes:
    """Draws a bar for each parameter with two values or more."""
    insight = sweep.insight()
    if not insight.importance:
        raise NoResultError(f"sweep {sweep.id[:8]}: {insight.importance_of.problem}")
    names = [item.parameter for item in insight.importance]
    ax = _axes(ax)
    ax.barh(names[::-1], [item.importance or 0.0 for item in insight.importance][::-1])
    ax.set(xlabel="importance", xlim=(0, 1), title=f"{sweep.name} {sweep.id[:8]}")
    return ax


def plot_metric(number: int, name: str, points: Sequence[tuple[int, float]], ax: Optional[Axes]) -> Axes:
    """Draws a metric of a trial by step; several trials may share the axes."""
    ax = _axes(ax)
    marker = "." if len(points) < 50 else ""
    ax.plot([step for step, _ in points], [value for _, value in points], marker=marker, label=f"trial {number}")
    ax.set(xlabel="step", ylabel=name)
    ax.legend()
    return ax


class _Scale:
    """Where the values of one parameter are on its axis, from 0 to 1. A trial without one is at NaN."""

    def __init__(self, name: str, values: Sequence[Any], log: bool) -> None:
        self.name = name
        here = [value for value in values if value is not None]
        self.varies = len(set(map(repr, here))) > 1
        self.numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in here)
        self.log = self.numeric and log and all(value > 0 for value in here)
        self.words = list(dict.fromkeys(map(str, here)))
        numbers = [self.number(value) for value in here] or [0.0]
        self.low, self.high = min(numbers), max(numbers)

    def number(self, value: Any) -> float:
        if not self.numeric:
            return float(self.words.index(str(value)))
        return math.log10(value) if self.log else float(value)

    def at(self, value: Any) -> float:
        if value is None:
            return math.nan
        return (self.number(value) - self.low) / (self.high - self.low) if self.high > self.low else 0.5

    def ticks(self) -> list[tuple[float, str]]:
        if not self.numeric:
            return [(self.at(word), word) for word in self.words]
        middle = (self.low + self.high) / 2
        numbers = [self.low, middle, self.high] if self.high > self.low else [self.low]
        real = [10**n if self.log else n for n in numbers]
        return [(self.at(n), f"{n:.4g}") for n in real]
