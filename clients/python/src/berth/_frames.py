"""Results as frames and series of pandas."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from berth import models
from berth._trial import seconds

try:
    import pandas as pd
except ImportError as error:
    raise ImportError("this needs pandas: pip install pandas") from error


def trial_frame(trials: Sequence[models.Trial], parameters: Sequence[str]) -> pd.DataFrame:
    """Returns a row for each trial; the columns as in Sweep.dataframe, with these parameters first."""
    names = list(dict.fromkeys([*parameters, *(name for trial in trials for name in trial.params)]))
    newest = [trial.latest_attempt for trial in trials]
    columns: dict[str, Any] = {
        "number": pd.Series([trial.number for trial in trials], dtype="int64"),
        "state": pd.Series([trial.state for trial in trials], dtype="object"),
        "value": pd.Series([trial.value for trial in trials], dtype="float64"),
    }
    for name in dict.fromkeys(name for trial in trials for name in trial.results or {}):
        columns[f"results.{name}"] = pd.Series([(trial.results or {}).get(name) for trial in trials], dtype="float64")
    for name in names:
        columns[f"params.{name}"] = _values([trial.params.get(name) for trial in trials])
    columns["host"] = pd.Series([a.host_name if a else None for a in newest], dtype="object")
    columns["device"] = pd.Series([a.device_id if a else None for a in newest], dtype="object")
    columns["reserved_bytes"] = _bytes([a.memory_bytes if a else None for a in newest])
    columns["peak_bytes"] = _bytes([a.memory_peak_bytes if a else None for a in newest])
    columns["device_reserved_bytes"] = _bytes([a.device_bytes if a else None for a in newest])
    columns["device_peak_bytes"] = _bytes([a.device_peak_bytes if a else None for a in newest])
    columns["seconds"] = pd.Series([seconds(trial) for trial in trials], dtype="float64")
    failures = [None if trial.failure_kind == "ok" else trial.failure_kind for trial in trials]
    columns["failure"] = pd.Series(failures, dtype="object")
    columns["message"] = pd.Series([trial.message for trial in trials], dtype="object")
    return pd.DataFrame(columns)


def _bytes(values: Sequence[Any]) -> pd.Series[Any]:
    """Returns sizes; 0 = not measured."""
    return pd.Series([value or None for value in values], dtype="Int64")


def _values(values: Sequence[Any]) -> pd.Series[Any]:
    """Returns the values of a parameter; whole numbers stay whole where a trial has none."""
    here = [value for value in values if value is not None]
    if not here:
        return pd.Series(values, dtype="object")
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in here)
    if len(here) < len(values) and whole:
        return pd.Series(values, dtype="Int64")
    return pd.Series(values)


def metric_frame(table: bytes) -> pd.DataFrame:
    """Returns the points of an exported table that count, columns as in Sweep.metrics."""
    frame = pd.read_csv(io.BytesIO(table))
    frame["at"] = pd.to_datetime(frame["at"], format="ISO8601", utc=True)  # a whole second has no fraction
    return frame.loc[frame["counts"], ["trial", "name", "step", "value", "at"]].reset_index(drop=True)


def series(name: str, points: Sequence[tuple[int, float]]) -> pd.Series[float]:
    """Returns a metric by step."""
    index = pd.Index([step for step, _ in points], dtype="int64", name="step")
    return pd.Series([value for _, value in points], index=index, name=name, dtype="float64")
