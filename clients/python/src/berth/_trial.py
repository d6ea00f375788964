"""A trial: its values, metrics, log and files."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Optional, Union

from berth import _files, _html, models
from berth._errors import BerthError, BerthWarning
from berth._transport import Transport, path

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

ENDED = ("succeeded", "failed", "infeasible", "canceled", "pruned")

# What the server sends at most of one metric, and of a log in one answer.
MOST_POINTS = 100_000
LOG_PIECE = 16 << 20


class Trial:
    """A trial as it was when it was read last; ``refresh()`` reads it again."""

    def __init__(self, transport: Transport, data: models.Trial, metric: Optional[str]) -> None:
        self._transport = transport
        self._metric = metric
        self.data = data
        """All that the server says of it."""

    @property
    def number(self) -> int:
        """Its number in its sweep, from 1."""
        return self.data.number

    @property
    def id(self) -> str:
        """Its id, unique among the trials of all sweeps."""
        return self.data.id

    @property
    def state(self) -> str:
        """pending, probing, waiting, running, succeeded, failed, infeasible, canceled or pruned (stopped early)."""
        return self.data.state

    @property
    def ended(self) -> bool:
        """It has ended, well or not."""
        return self.state in ENDED

    @property
    def value(self) -> Optional[float]:
        """The value of the objective; None = none (yet), or a constraint is broken."""
        return self.data.value

    @property
    def results(self) -> dict[str, float]:
        """The objectives' metrics and the constraints', by name; empty unless the sweep has several, or constraints."""
        return self.data.results or {}

    @property
    def params(self) -> dict[str, Any]:
        """The value of each parameter that the trial has."""
        return self.data.params

    @property
    def failure(self) -> Optional[str]:
        """How it failed, such as host_oom or user_error (docs/errors.md); None = it did not."""
        return None if self.data.failure_kind == "ok" else self.data.failure_kind

    @property
    def message(self) -> Optional[str]:
        """What went wrong, in plain words, with the next step."""
        return self.data.message

    @property
    def seconds(self) -> Optional[float]:
        """From its start to its end; None = it has not ended, or never began."""
        return seconds(self.data)

    def refresh(self) -> Trial:
        """Reads the trial as it is now, and returns it."""
        self.data = self._transport.read(models.Trial, self._path())
        return self

    def set_note(self, note: str) -> Trial:
        """As Sweep.set_note."""
        self.data = self._transport.change(models.Trial, "PATCH", self._path(), {"note": note})
        return self

    def attempts(self) -> list[models.Attempt]:
        """Its container launches, first to last, with each one's reservation and use."""
        return self._transport.read(models.AttemptList, self._path() + "/attempts").data

    # Metrics.

    def points(self, name: Optional[str] = None) -> list[tuple[int, float]]:
        """Its reported values of a metric, as (step, value); default: the objective's.

        Empty = it never reported the metric. Values may be NaN or infinite.
        """
        name = self._named(name)
        curves = self._transport.read(
            models.CurveList,
            path("sweeps", self.data.sweep_id, "metrics"),
            {"name": name, "trials": str(self.number), "max_points": 4},
        )
        if not curves.data:
            return []
        # The curve says which attempt counts, and leaves out most points.
        metrics = self._transport.read(
            models.MetricList,
            path("attempts", curves.data[0].attempt_id, "metrics"),
            {"name": name, "limit": MOST_POINTS},
        )
        if len(metrics.data) == MOST_POINTS:
            warnings.warn(
                f"metric {name!r} has more than {MOST_POINTS:,} points; the rest is left out",
                BerthWarning,
                stacklevel=2,
            )
        return [(metric.step, _number(metric)) for metric in metrics.data]

    def metrics(self, name: Optional[str] = None) -> pd.Series[float]:
        """The same as a Series by step; needs pandas."""
        from berth._frames import series

        name = self._named(name)
        return series(name, self.points(name))

    def _named(self, name: Optional[str]) -> str:
        name = name or self._metric
        if name is None:
            raise ValueError("the sweep has no objective; name a metric (sweep.metric_names() has them)")
        return name

    def plot(self, name: Optional[str] = None, ax: Optional[Axes] = None) -> Axes:
        """Draws a metric by step; default: the objective's. Needs matplotlib."""
        from berth._plots import plot_metric

        name = self._named(name)
        return plot_metric(self.number, name, self.points(name), ax)

    # Log and files.

    def log(self, attempt: Optional[int] = None) -> str:
        """Its standard output and error, with Berth's own lines; default: the newest attempt's.

        Of a trial that runs, what there is so far. Empty = it has not started.
        """
        attempts = self.attempts()
        if attempt is not None:
            attempts = [a for a in attempts if a.number == attempt]
            if not attempts:
                raise BerthError(f"trial {self.number} has no attempt {attempt}")
        if not attempts:
            return ""
        at = path("attempts", attempts[-1].id, "log")
        text, offset = bytearray(), 0
        while True:
            answer = self._transport.call(
                "GET", at, params={"offset": offset, "limit": LOG_PIECE}, headers={"Accept": "text/plain"}
            )
            text += answer.content
            offset = int(answer.headers.get("X-Next-Offset", offset))
            if len(answer.content) < LOG_PIECE:
                return text.decode("utf-8", errors="replace")

    def files(self, *, attempt: Optional[int] = None, timeout: float = _files.STORE_TIMEOUT) -> list[models.File]:
        """Its files in /trial/out: path, bytes, SHA-256; of the last attempt, or of the named one.

        Files are stored a few seconds after the trial's end; so long it waits, ``timeout`` seconds at most.
        Errors: FilesError when they are not stored, and why. What was left out comes as BerthWarning.
        """
        return _files.stored(self._transport, self.refresh(), attempt, timeout).data

    def download(
        self,
        directory: Union[str, os.PathLike[str]],
        *paths: str,
        attempt: Optional[int] = None,
        timeout: float = _files.STORE_TIMEOUT,
    ) -> Path:
        """Downloads the trial's files to a directory, which is made, and returns its path.

        ``paths`` names files, or directories of them, below /trial/out; default: all. With one, its
        own path is returned: ``model = trial.download("best", "model.keras")``.
        Every file is held to its SHA-256. What is there already stays; what was cut goes on where it was.
        Errors: FilesError.
        """
        found = _files.stored(self._transport, self.refresh(), attempt, timeout)
        return _files.download(self._transport, self.id, found, directory, paths)

    def _path(self) -> str:
        return path("sweeps", self.data.sweep_id, "trials", self.number)

    def __repr__(self) -> str:
        value = "" if self.value is None else f" value={self.value:.6g}"
        params = " ".join(f"{name}={value}" for name, value in self.params.items())
        return f"<berth.Trial {self.number} {self.state}{value} {params}>"

    def _repr_html_(self) -> str:
        return _html.trial(
            self.data, self._transport.server + path("sweeps", self.data.sweep_id, "trials", self.number)
        )


def seconds(trial: models.Trial) -> Optional[float]:
    """Returns the seconds from the trial's start to its end; None when one is missing."""
    if trial.started_at is None or trial.finished_at is None:
        return None
    return (trial.finished_at - trial.started_at).total_seconds()


def _number(metric: models.Metric) -> float:
    """Returns the value of a point; JSON has none for a value that is not finite."""
    return metric.value if metric.value is not None else float(metric.status)
