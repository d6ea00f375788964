"""Sweeps for MLflow, TensorBoard and Optuna, written by their own libraries."""

from __future__ import annotations

import json
import os
import posixpath
import re
import tempfile
import warnings
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Optional, Union

from berth._errors import NoResultError
from berth._transport import Transport, path

if TYPE_CHECKING:
    from berth import models

# A line of a table that the server exports (docs/export.md), by column.
Row = dict[str, Any]

# What MLflow takes in one call (mlflow/utils/validation.py).
BATCH_METRICS = 1000
BATCH_PARAMS = 100

MLFLOW_STATUS = {
    "succeeded": "FINISHED", "failed": "FAILED", "infeasible": "FAILED", "canceled": "KILLED", "pruned": "FINISHED",
}  # fmt: skip

TAGS = (
    "state", "failure_kind", "attempts", "host", "device",
    "memory_reserved_bytes", "memory_peak_bytes", "device_reserved_bytes", "device_peak_bytes",
)  # fmt: skip


def results(transport: Transport, sweep_id: str) -> Iterator[tuple[Row, list[Row]]]:
    """Yields each trial by number, with the points of the attempt that its row shows.

    Both tables are read before the first is yielded: an export that is cut writes nothing.
    """
    with _table(transport, sweep_id, "trials") as rows, _table(transport, sweep_id, "metrics") as points:
        trials = [json.loads(line) for line in rows]
        shown = {trial["number"]: trial["attempt"] for trial in trials}
        # A trial may have run again between the two tables.
        counting = (point for point in map(json.loads, points) if point["attempt"] == shown.get(point["trial"]))
        curves = groupby(counting, key=lambda point: point["trial"])
        number, curve = next(curves, (None, iter(())))
        for trial in trials:
            if trial["number"] == number:
                yield trial, list(curve)
                number, curve = next(curves, (None, iter(())))
            else:
                yield trial, []


def _table(transport: Transport, sweep_id: str, what: str) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (the caller closes it)
    with transport.stream(path("sweeps", sweep_id, "export"), params={"format": "jsonl", "what": what}) as answer:
        for part in answer.iter_bytes():
            file.write(part)
    file.seek(0)
    return file


def _named(row: Row, prefix: str) -> Row:
    """Returns the cells of the columns with a prefix that have a value, without the prefix."""
    return {name[len(prefix) :]: value for name, value in row.items() if name.startswith(prefix) and value is not None}


def _began(trial: Row) -> float:
    return _unix(trial["started_at"] or trial["created_at"])


def _unix(time: str) -> float:
    """Returns seconds since 1970. Python before 3.11 reads fractions of three or six digits only."""
    whole, _, fraction = time.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float(f"0.{fraction or 0}")


def _number(point: Row) -> float:
    return float(point["status"]) if point["value"] is None else float(point["value"])


def to_mlflow(
    transport: Transport, sweep: models.Sweep, tracking_uri: Optional[str], experiment: Optional[str]
) -> dict[int, str]:
    """Writes a run for each trial; earlier runs of the sweep in the experiment are deleted."""
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param
    except ImportError as error:
        raise ImportError("this needs MLflow: pip install mlflow") from error

    client = MlflowClient(tracking_uri)
    name = experiment or f"{sweep.name} {sweep.id[:8]}"
    runs: dict[int, str] = {}
    place = ""
    for trial, points in results(transport, sweep.id):
        if not place:
            found = client.get_experiment_by_name(name)
            place = found.experiment_id if found else client.create_experiment(name)
            while earlier := client.search_runs([place], f"tags.`berth.sweep_id` = '{sweep.id}'"):
                for old in earlier:
                    client.delete_run(old.info.run_id)
        number, began = trial["number"], _ms(_began(trial))
        run = client.create_run(place, began, _mlflow_tags(sweep, trial), f"trial-{number}").info.run_id
        runs[number] = run
        params = [Param(key, str(value)) for key, value in _named(trial, "params.").items()]
        metrics = [
            Metric(_mlflow_name(point["name"]), _number(point), _ms(_unix(point["at"])), point["step"])
            for point in points
        ]
        ended = _ms(_unix(trial["finished_at"])) if trial["finished_at"] else None
        if trial["value"] is not None:
            metrics.append(Metric("berth.value", trial["value"], ended or began, 0))
        for at in range(0, len(params), BATCH_PARAMS):
            client.log_batch(run, params=params[at : at + BATCH_PARAMS])
        for at in range(0, len(metrics), BATCH_METRICS):
            client.log_batch(run, metrics=metrics[at : at + BATCH_METRICS])
        if ended:
            client.set_terminated(run, MLFLOW_STATUS.get(trial["state"]), ended)
        elif trial["state"] != "running":
            client.update_run(run, "SCHEDULED")
    return runs


def _mlflow_tags(sweep: models.Sweep, trial: Row) -> dict[str, str]:
    tags = {"sweep": sweep.name, "sweep_id": sweep.id, "image_digest": sweep.image_digest}
    tags.update(trial=trial["number"], trial_id=trial["id"], **{name: trial[name] for name in TAGS})
    tags.update({f"dataset.{name}": version for name, version in _named(trial, "datasets.").items()})
    tags = {f"berth.{name}": str(value) for name, value in tags.items() if value is not None}
    if trial["message"]:
        tags["mlflow.note.content"] = trial["message"]  # the description of a run
    return tags


def _mlflow_name(name: str) -> str:
    """Returns a metric's name with characters that MLflow allows, which is also a path that stays below its own."""
    name = re.sub(r"[^/\w.\- :]", "_", name)
    if name != posixpath.normpath(name) or name.startswith((".", "/")):
        name = "_" + name.replace("/", "_")
    return name


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def to_tensorboard(transport: Transport, sweep_id: str, directory: Union[str, os.PathLike[str]]) -> Path:
    """Writes an event file for each trial, in place of an earlier one."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.hparams import api_pb2, metadata
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
        from tensorboard.summary.writer.record_writer import RecordWriter
    except ImportError as error:
        raise ImportError("this needs TensorBoard: pip install tensorboard") from error

    def session(tag: str, data: HParamsPluginData) -> Summary.Value:
        return Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(data), tensor=metadata.NULL_TENSOR)

    status = {"succeeded": api_pb2.STATUS_SUCCESS, "pruned": api_pb2.STATUS_SUCCESS, "running": api_pb2.STATUS_RUNNING}
    status.update(dict.fromkeys(("failed", "infeasible", "canceled"), api_pb2.STATUS_FAILURE))
    root = Path(directory) / sweep_id[:8]
    for trial, points in results(transport, sweep_id):
        run = root / f"trial-{trial['number']:05}"
        run.mkdir(parents=True, exist_ok=True)
        began = _began(trial)
        ended = _unix(trial["finished_at"]) if trial["finished_at"] else 0.0
        start = SessionStartInfo(group_name=f"{sweep_id[:8]}/{run.name}", start_time_secs=began)
        for name, value in _named(trial, "params.").items():
            kind = "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
            setattr(start.hparams[name], kind + "_value", value)
        end = SessionEndInfo(status=status.get(trial["state"], api_pb2.STATUS_UNKNOWN), end_time_secs=ended)
        values = [
            session(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start)),
            session(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=end)),
        ]
        if trial["value"] is not None:
            values.append(Summary.Value(tag="berth/value", simple_value=trial["value"]))
        events = [
            Event(wall_time=began, file_version="brain.Event:2"),
            Event(wall_time=max(began, ended), summary=Summary(value=values)),
        ]
        for point in points:
            scalar = Summary.Value(tag=point["name"], simple_value=_number(point))
            events.append(Event(wall_time=_unix(point["at"]), step=point["step"], summary=Summary(value=[scalar])))
        with (run / "events.out.tfevents.berth").open("wb") as file:
            writer = RecordWriter(file)
            for event in events:
                writer.write(event.SerializeToString())
    return root


def to_optuna(transport: Transport, sweep: models.Sweep, file: Union[str, os.PathLike[str]]) -> Path:
    """Adds the sweep's ended trials to an Optuna journal, as a new study."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
        from optuna.trial import TrialState
    except ImportError as error:
        raise ImportError("this needs Optuna: pip install 'optuna>=5'") from error

    if sweep.objective is None:
        raise NoResultError(f"sweep {sweep.id[:8]} has no objective, which a study needs")
    objectives = [sweep.objective, *(sweep.objective.further or [])]
    distributions = {one["name"]: space for one in (sweep.spec or {}).get("parameters", []) if (space := _space(one))}
    states = {"succeeded": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
    trials = []
    for trial, points in results(transport, sweep.id):
        if not trial["finished_at"]:
            continue
        named = _named(trial, "results.") or {sweep.objective.metric: trial["value"]}
        named = {name: value for name, value in named.items() if value is not None}
        state = states.get(trial["state"], TrialState.FAIL)
        complete = state == TrialState.COMPLETE and all(one.metric in named for one in objectives)
        params = {name: value for name, value in _named(trial, "params.").items() if name in distributions}
        curve = {p["step"]: _number(p) for p in points if p["name"] == sweep.objective.metric and not p["final"]}
        frozen = optuna.trial.create_trial(
            state=TrialState.FAIL if state == TrialState.COMPLETE and not complete else state,
            values=[float(named[one.metric]) for one in objectives] if complete else None,
            params=params,
            distributions={name: distributions[name] for name in params},
            intermediate_values=curve if len(objectives) == 1 else {},
            user_attrs={"berth.trial": trial["number"], "berth.state": trial["state"]},
            constraints={c.metric: _beyond(c, named[c.metric]) for c in sweep.constraints or [] if c.metric in named},
        )
        frozen.datetime_start = datetime.fromtimestamp(_began(trial))
        frozen.datetime_complete = datetime.fromtimestamp(_unix(trial["finished_at"]))
        trials.append(frozen)
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(os.fspath(file))),
        study_name=f"{sweep.name} {sweep.id[:8]}",
        directions=[optuna.study.StudyDirection[one.goal.upper()] for one in objectives],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names([one.metric for one in objectives])
    study.add_trials(trials)
    return Path(file)


def _space(parameter: Row) -> Any:
    """Returns the distribution of a searched parameter; None = it is fixed or derived."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    low, high, log, step = (parameter.get(key) for key in ("min", "max", "log", "step"))
    if parameter["type"] == "categorical":
        return CategoricalDistribution(parameter["values"])
    if parameter["type"] == "int":
        return IntDistribution(int(low or 0), int(high or 0), log=bool(log), step=int(step or 1))
    if parameter["type"] == "float":
        return FloatDistribution(float(low or 0), float(high or 0), log=bool(log), step=step)
    return None


def _beyond(constraint: models.Constraint, value: float) -> float:
    """Returns by how much a result is beyond a constraint; 0 or less = it is within."""
    over = -float("inf") if constraint.max is None else value - constraint.max
    return over if constraint.min is None else max(over, constraint.min - value)
