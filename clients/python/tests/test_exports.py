"""What MLflow and TensorBoard themselves read of a sweep that was written for them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qs, urlsplit

import optuna
import pytest
from fake import Request, fake_server
from mlflow import MlflowClient
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages.journal import JournalFileBackend
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.util import tensor_util
from test_trouble import A_SWEEP

import berth
from berth._exports import _mlflow_name, _unix

SWEEP = {**A_SWEEP, "id": "0123456789ab", "name": "digits"}


def row(number: int, state: str, attempt: Optional[int], **cells: Any) -> dict[str, Any]:
    """Returns a line of the table of trials."""
    return {
        "number": number, "id": f"t{number}", "state": state, "value": None,
        "params.lr": 0.1 * number, "params.batch": 8, "params.optimizer": "adam", "params.nesterov": True,
        "params.momentum": None, "failure_kind": None, "message": None, "attempts": attempt or 0, "attempt": attempt,
        "attempt_id": None, "exit_code": None, "host": "h1", "device": None,
        "memory_reserved_bytes": 512, "memory_peak_bytes": None,
        "device_reserved_bytes": None, "device_peak_bytes": None, "seconds": None,
        "created_at": "2026-01-01T00:00:00Z", "started_at": "2026-01-01T00:00:01.25Z",
        "finished_at": None, "datasets.flowers": "v1", **cells,
    }  # fmt: skip


TRIALS = [
    row(1, "succeeded", 2, value=0.25, finished_at="2026-01-01T00:01:00.123456Z", failure_kind="ok", device="GPU-1"),
    row(2, "failed", 1, finished_at="2026-01-01T00:02:00Z", failure_kind="user_error", message="one\nmore\x85line"),
    row(3, "running", 1),
    row(4, "waiting", None, started_at=None),
    row(5, "canceled", 1, finished_at="2026-01-01T00:02:00Z"),
]
LOSSES = [0.5, math.nan, math.inf, -math.inf] + [1 / (1 + step) for step in range(4, 1500)]
VALID = ["finite", "nan", "infinity", "-infinity"] + ["finite"] * 1496


def point(trial: int, attempt: int, name: str, step: int, value: float, status: str = "finite") -> dict[str, Any]:
    """Returns a line of the table of metrics."""
    return {
        "trial": trial, "attempt": attempt, "counts": True, "name": name, "step": step, "status": status,
        "value": value if status == "finite" else None, "final": False, "at": f"2026-01-01T00:00:02.{step:06}Z",
    }  # fmt: skip


# The first attempt of trial 1 is not the attempt that its row shows, and trial 6 was made
# since.
POINTS = [
    point(1, 1, "loss", 0, 99),
    *(point(1, 2, "loss", step, value, VALID[step]) for step, value in enumerate(LOSSES)),
    point(1, 2, "recall@5", 0, 0.75),
    point(3, 1, "loss", 7, 0.125),
    point(6, 1, "loss", 1, 1),
]


@contextmanager
def a_sweep(cut: bool = False, data: dict[str, Any] = SWEEP) -> Iterator[berth.Sweep]:
    """Serves the sweep; of its metrics half, if they are cut."""

    def answer(r: Request) -> None:
        where = urlsplit(r.path)
        if not where.path.endswith("/export"):
            r.send(200, data)
            return
        asked = parse_qs(where.query)
        assert asked["format"] == ["jsonl"]
        lines = TRIALS if asked["what"] == ["trials"] else POINTS
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        if cut and asked["what"] == ["metrics"]:
            r.begin(200, Content_Length=str(len(body)))
            r.wfile.write(body[: len(body) // 2])
            r.cut()
        else:
            r.send(200, body)

    with fake_server(answer) as (url, _), berth.connect(url) as client:
        yield client.sweep("0")


@pytest.fixture
def mlflow(tmp_path: Path) -> MlflowClient:
    """Returns a client of an MLflow that keeps its runs in a file of the test."""
    return MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")


def runs_of(mlflow: MlflowClient, experiment: str) -> dict[str, Any]:
    """Returns the runs of an experiment by their ids."""
    place = mlflow.get_experiment_by_name(experiment)
    assert place is not None
    return {run.info.run_id: run for run in mlflow.search_runs([place.experiment_id])}


def test_mlflow_reads_its_runs(mlflow: MlflowClient) -> None:
    with a_sweep() as sweep:
        first = sweep.to_mlflow(tracking_uri=mlflow.tracking_uri)
        ids = sweep.to_mlflow(tracking_uri=mlflow.tracking_uri)
    runs = runs_of(mlflow, "digits 01234567")
    assert set(runs) == set(ids.values()) and not set(runs) & set(first.values()), "the second takes the first's place"
    one, two, three, four, five = (runs[ids[number]] for number in range(1, 6))

    assert [run.info.status for run in (one, two, three, four, five)] == [
        "FINISHED", "FAILED", "RUNNING", "SCHEDULED", "KILLED",
    ]  # fmt: skip
    assert one.info.run_name == "trial-1"
    assert (one.info.start_time, one.info.end_time) == (1767225601250, 1767225660123)
    assert three.info.end_time is None and four.info.end_time is None
    assert one.data.params == {"lr": "0.1", "batch": "8", "optimizer": "adam", "nesterov": "True"}
    tags = {name: value for name, value in one.data.tags.items() if name.startswith("berth.")}
    assert tags == {
        "berth.sweep": "digits", "berth.sweep_id": "0123456789ab", "berth.image_digest": "d", "berth.trial": "1",
        "berth.trial_id": "t1", "berth.state": "succeeded", "berth.failure_kind": "ok", "berth.attempts": "2",
        "berth.host": "h1", "berth.device": "GPU-1", "berth.memory_reserved_bytes": "512",
        "berth.dataset.flowers": "v1",
    }  # fmt: skip
    assert two.data.tags["mlflow.note.content"] == "one\nmore\x85line"
    assert two.data.tags["berth.failure_kind"] == "user_error"
    assert one.data.metrics["berth.value"] == 0.25 and one.data.metrics["recall_5"] == 0.75
    assert two.data.metrics == {} and three.data.metrics == {"loss": 0.125}

    curve = sorted(mlflow.get_metric_history(ids[1], "loss"), key=lambda metric: metric.step)
    assert [metric.timestamp for metric in curve] == [1767225602000 + round(step / 1000) for step in range(1500)]
    # MLflow's database has no infinite numbers.
    largest = sys.float_info.max
    for metric, value in zip(curve, LOSSES):
        expected = max(min(value, largest), -largest)
        assert metric.value == expected or (math.isnan(metric.value) and math.isnan(value))


def test_mlflow_keeps_sweeps_of_one_experiment_apart(mlflow: MlflowClient) -> None:
    place = mlflow.create_experiment("mine")
    other = mlflow.create_run(place, tags={"berth.sweep_id": "another"}).info.run_id
    with a_sweep() as sweep:
        ids = sweep.to_mlflow(tracking_uri=mlflow.tracking_uri, experiment="mine")
    assert set(runs_of(mlflow, "mine")) == {other, *ids.values()}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("val/loss: 1-a_b.c", "val/loss: 1-a_b.c"),
        ("Genauigkeit %", "Genauigkeit _"),
        ("../x", "_.._x"),
        ("a//b", "_a__b"),
        ("/abs", "__abs"),
        (".", "_."),
        ("ü", "ü"),
    ],
)
def test_mlflow_takes_the_names(mlflow: MlflowClient, name: str, allowed: str) -> None:
    assert _mlflow_name(name) == allowed
    run = mlflow.create_run("0").info.run_id
    mlflow.log_metric(run, allowed, 1)
    assert mlflow.get_run(run).data.metrics == {allowed: 1}


def test_tensorboard_reads_its_directory(tmp_path: Path) -> None:
    with a_sweep() as sweep:
        for _ in range(2):
            assert sweep.to_tensorboard(tmp_path / "logs") == tmp_path / "logs" / "01234567"
    logs = str(tmp_path / "logs")
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0, "hparams": 0})
    multiplexer.AddRunsFromDirectory(logs)
    multiplexer.Reload()
    runs = [f"01234567/trial-{number:05}" for number in range(1, 6)]
    assert sorted(multiplexer.Runs()) == runs

    events = multiplexer.Tensors(runs[0], "loss")
    values = [float(tensor_util.make_ndarray(event.tensor_proto).item()) for event in events]
    assert [event.step for event in events] == list(range(1500))
    assert values == pytest.approx(LOSSES, nan_ok=True)  # 32-bit floats
    assert [event.wall_time for event in events] == pytest.approx([1767225602 + i / 1e6 for i in range(1500)], abs=1e-6)
    assert len(multiplexer.Tensors(runs[2], "loss")) == 1

    groups = {group.name: group for group in hparams(multiplexer, logs)}
    assert sorted(groups) == runs
    shown = {name: getattr(value, value.WhichOneof("kind")) for name, value in groups[runs[0]].hparams.items()}
    assert shown == {"lr": 0.1, "batch": 8, "optimizer": "adam", "nesterov": True}
    assert [groups[run].sessions[0].status for run in runs] == [
        api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING, api_pb2.STATUS_UNKNOWN,
        api_pb2.STATUS_FAILURE,
    ]  # fmt: skip
    assert {metric.name.tag: metric.value for metric in groups[runs[0]].metric_values}["berth/value"] == 0.25
    session = groups[runs[0]].sessions[0]
    assert (session.start_time_secs, session.end_time_secs) == (1767225601.25, 1767225660.123456)


def hparams(multiplexer: Any, logs: str) -> list[Any]:
    """Returns the rows of TensorBoard's tab of hyperparameters."""
    provider = data_provider.MultiplexerDataProvider(multiplexer, logs)
    context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
    request = RequestContext()
    experiment = context.experiment_from_metadata(
        request, "", True, context.hparams_metadata(request, ""), context.hparams_from_data_provider(request, "", 1000)
    )
    asked = api_pb2.ListSessionGroupsRequest(
        slice_size=1000,
        allowed_statuses=[
            api_pb2.STATUS_UNKNOWN,
            api_pb2.STATUS_SUCCESS,
            api_pb2.STATUS_FAILURE,
            api_pb2.STATUS_RUNNING,
        ],
        col_params=[api_pb2.ColParams(metric=info.name) for info in experiment.metric_infos],
    )
    return list(list_session_groups.Handler(request, context, "", asked).run().session_groups)


def test_an_export_that_is_cut_changes_nothing(mlflow: MlflowClient, tmp_path: Path) -> None:
    with a_sweep() as sweep:
        ids = sweep.to_mlflow(tracking_uri=mlflow.tracking_uri, experiment="mine")
    with a_sweep(cut=True) as sweep:
        with pytest.raises(berth.UnreachableError):
            sweep.to_mlflow(tracking_uri=mlflow.tracking_uri, experiment="mine")
        with pytest.raises(berth.UnreachableError):
            sweep.to_tensorboard(tmp_path / "logs")
    assert set(runs_of(mlflow, "mine")) == set(ids.values())
    assert not (tmp_path / "logs").exists()


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("mlflow", "tensorboard.plugins.hparams"):
        monkeypatch.setitem(sys.modules, module, None)
    with a_sweep() as sweep:
        with pytest.raises(ImportError, match="pip install mlflow"):
            sweep.to_mlflow()
        with pytest.raises(ImportError, match="pip install tensorboard"):
            sweep.to_tensorboard(tmp_path)


@pytest.mark.parametrize(("text", "seconds"), [("2026-01-01T00:00:00Z", 0), ("2026-01-01T00:00:00.5Z", 0.5)])
def test_times_have_fractions_of_any_length(text: str, seconds: float) -> None:
    assert _unix(text) == 1767225600 + seconds


def test_optuna_reads_its_study(tmp_path: Path) -> None:
    parameters: list[dict[str, Any]] = [
        {"name": "lr", "type": "float", "min": 0.001, "max": 1, "log": True},
        {"name": "batch", "type": "int", "min": 8, "max": 64, "step": 8},
        {"name": "optimizer", "type": "categorical", "values": ["adam", "sgd"]},
        {"name": "momentum", "type": "float", "min": 0, "max": 1, "when": {"optimizer": ["sgd"]}},
        {"name": "nesterov", "type": "fixed", "value": True},
    ]
    constraint = {"metric": "loss", "max": 0.2}
    objective = {"metric": "loss", "goal": "minimize"}
    data = {**SWEEP, "spec": {"parameters": parameters}, "objective": objective, "constraints": [constraint]}
    with a_sweep(data=data) as sweep:
        file = sweep.to_optuna(tmp_path / "journal.log")
        with pytest.raises(optuna.exceptions.DuplicatedStudyError):
            sweep.to_optuna(file)
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(file)))
    study = optuna.load_study(study_name="digits 01234567", storage=storage)
    assert study.metric_names == ["loss"] and study.direction == optuna.study.StudyDirection.MINIMIZE
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "FAIL"], "open trials are left out"
    first = study.trials[0]
    assert first.params == {"lr": 0.1, "batch": 8, "optimizer": "adam"}
    assert first.distributions["lr"] == FloatDistribution(0.001, 1, log=True)
    assert first.distributions["batch"] == IntDistribution(8, 64, step=8)
    assert first.distributions["optimizer"] == CategoricalDistribution(["adam", "sgd"])
    assert first.value == 0.25 and first.constraints == {"loss": pytest.approx(0.05)}
    assert first.intermediate_values[0] == 0.5 and len(first.intermediate_values) == len(LOSSES)
    assert first.duration is not None and first.duration.total_seconds() == pytest.approx(58.873456)
    assert first.user_attrs == {"berth.trial": 1, "berth.state": "succeeded"}
    with a_sweep() as sweep, pytest.raises(berth.NoResultError, match="has no objective"):
        sweep.to_optuna(tmp_path / "other.log")
