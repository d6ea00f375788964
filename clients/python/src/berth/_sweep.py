"""A sweep: waiting for it, steering it, and its results."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Optional, Union

from berth import _html, _wait, models
from berth._errors import BerthError, NoResultError
from berth._transport import Transport, path
from berth._trial import Trial

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.axes import Axes

ENDED = ("succeeded", "failed", "stopped", "canceled")


class Sweep:
    """A sweep as it was when it was read last; ``refresh()`` reads it again.

    ``trials``, ``best`` and ``dataframe()`` ask the server each time.
    """

    def __init__(self, transport: Transport, data: models.Sweep) -> None:
        self._transport = transport
        self.data = data
        """All that the server says of it."""

    @property
    def id(self) -> str:
        """Its id; the first eight characters are mostly enough for a person."""
        return self.data.id

    @property
    def name(self) -> str:
        """Its name, which other sweeps may have, too."""
        return self.data.name

    @property
    def state(self) -> str:
        """pending, running, paused, stopping, canceling, succeeded, failed, stopped or canceled."""
        return self.data.state

    @property
    def ended(self) -> bool:
        """It has ended, well or not."""
        return self.state in ENDED

    @property
    def reason(self) -> Optional[str]:
        """Why it ended, or what the user must do."""
        return self.data.reason

    @property
    def counts(self) -> models.Counts:
        """Trials by state."""
        return self.data.counts

    @property
    def url(self) -> str:
        """Its page in the web interface."""
        return self._transport.server + path("sweeps", self.id)

    @property
    def spec(self) -> dict[str, Any]:
        """The sweep file with all defaults filled in."""
        if self.data.spec is None:
            self.refresh()  # lists have no specs
        return self.data.spec or {}

    def refresh(self) -> Sweep:
        """Reads the sweep as it is now, and returns it."""
        self.data = self._transport.read(models.Sweep, path("sweeps", self.id))
        return self

    def _look(self, timeout: float) -> None:
        """Does the same as refresh(), in one try of this many seconds."""
        self.data = self._transport.read(models.Sweep, path("sweeps", self.id), tries=1, timeout=timeout)

    # Waiting and steering.

    def wait(self, *, progress: bool = True, timeout: Optional[float] = None) -> Sweep:
        """Waits until the sweep has ended, well or not, and returns it; ``state`` says how.

        ``progress`` draws a bar on a terminal and in a notebook (with tqdm), and writes a line for
        each change elsewhere, on standard error.
        A lost server is asked again until it is back. Ctrl-C stops waiting, and not the sweep.
        Errors: WaitTimeoutError after ``timeout`` seconds. The sweep goes on then, too.
        """
        _wait.wait(self, self._transport, progress=progress, timeout=timeout)
        return self

    def pause(self) -> Sweep:
        """Starts no trial until resumed; running ones go on."""
        return self._steer("pause")

    def resume(self) -> Sweep:
        """Starts trials again after a pause."""
        return self._steer("resume")

    def stop(self) -> Sweep:
        """Starts no trial any more; running ones finish."""
        return self._steer("stop")

    def cancel(self) -> Sweep:
        """Stops the containers of the sweep and ends it, in a moment: wait() waits for that."""
        return self._steer("cancel")

    def set_max_parallel(self, trials: int) -> Sweep:
        """Changes how many trials run at once; 0 = as many as fit."""
        self.data = self._transport.change(models.Sweep, "PATCH", path("sweeps", self.id), {"max_parallel": trials})
        return self

    def set_note(self, note: str) -> Sweep:
        """Notes at most 1,000 characters; "" removes them. Client.sweeps(name="#odd") finds tags in them."""
        self.data = self._transport.change(models.Sweep, "PATCH", path("sweeps", self.id), {"note": note})
        return self

    def delete(self) -> None:
        """Deletes the sweep, which must have ended, with its trials, results, logs and files."""
        self._transport.call("DELETE", path("sweeps", self.id))

    def clone(self, name: Optional[str] = None) -> Sweep:
        """Submits the same file as a new sweep. Its image is resolved again."""
        return self._copy("clone", name)

    def rerun_failed(self, name: Optional[str] = None) -> Sweep:
        """Submits the values of the trials that failed, did not fit or were canceled, as a new sweep."""
        return self._copy("rerun-failed", name)

    def _steer(self, verb: str) -> Sweep:
        self.data = self._transport.change(models.Sweep, "POST", path("sweeps", self.id, verb))
        return self

    def _copy(self, verb: str, name: Optional[str]) -> Sweep:
        body = {} if name is None else {"name": name}
        key = {"Idempotency-Key": str(uuid.uuid4())}
        data = self._transport.change(models.Sweep, "POST", path("sweeps", self.id, verb), body, headers=key)
        return Sweep(self._transport, data)

    # Results.

    @property
    def metric(self) -> Optional[str]:
        """The metric of its objective; None = it has none."""
        return self.data.objective.metric if self.data.objective else None

    @property
    def maximizes(self) -> bool:
        """The largest value is the best."""
        return self.data.objective is not None and self.data.objective.goal == "maximize"

    @property
    def trials(self) -> list[Trial]:
        """Its trials, by number."""
        pages = self._transport.pages(models.TrialList, path("sweeps", self.id, "trials"))
        return [self._trial(data) for page in pages for data in page.data]

    def trial(self, number: int) -> Trial:
        """Returns a trial by its number, from 1."""
        return self._trial(self._transport.read(models.Trial, path("sweeps", self.id, "trials", number)))

    @property
    def best(self) -> Trial:
        """The best trial so far.

        Errors: NoResultError while no trial has a value.
        """
        best = self.refresh().data.best
        if best is None:
            if self.metric is None:
                raise NoResultError(f"sweep {self.id[:8]} has no objective, so no trial is the best")
            raise NoResultError(
                f"no trial of sweep {self.id[:8]} has a value of {self.metric}; the sweep is {self.state}, "
                "and sweep.dataframe() or trial.message says what became of each trial"
            )
        return self.trial(best.trial)

    @property
    def best_trials(self) -> list[Trial]:
        """With several objectives, the trials that no other one beats in all; the best at the first one first."""
        return [self.trial(one.trial) for one in self.insight().front or []]

    @property
    def best_params(self) -> dict[str, Any]:
        """The values of the best trial."""
        return self.best.params

    @property
    def best_value(self) -> Optional[float]:
        """The value of the best trial."""
        return self.best.value

    def metric_names(self) -> list[str]:
        """The metrics that its trials reported."""
        names = self._transport.read(models.MetricNameList, path("sweeps", self.id, "metric-names"))
        return [item.name for item in names.data]

    def insight(self) -> models.SweepInsight:
        """What its trials tell so far: which parameters decide, best values, early stopping, who chose the values."""
        return self._transport.read(models.SweepInsight, path("sweeps", self.id, "insight"))

    def report(self) -> models.SweepReport:
        """The sweep's use and the saving by packing (docs/report.md), with all its trials."""
        report: Optional[models.SweepReport] = None
        for page in self._transport.pages(_ReportPage, path("sweeps", self.id, "report")):
            if report is None:
                report = page
            else:
                report.trials.extend(page.trials)
        if report is None:
            raise BerthError("the server sent no report")
        report.next_cursor = None
        return report

    def dataframe(self) -> pd.DataFrame:
        """One row for each trial; needs pandas.

        number, state, value, results.* (of several objectives and constraints), params.* (one column for
        each parameter; empty where a trial has none), host, device, reserved_bytes, peak_bytes and the same
        of the GPU's memory (device_…; empty = not measured, or no GPU), of the newest attempt; seconds from
        start to end, failure, message.
        """
        from berth._frames import trial_frame

        names = [parameter["name"] for parameter in self.spec.get("parameters") or []]
        return trial_frame([trial.data for trial in self.trials], names)

    def trials_dataframe(self) -> pd.DataFrame:
        """The same as dataframe(), by the name that Optuna has for it."""
        return self.dataframe()

    def metrics(self, name: Optional[str] = None) -> pd.DataFrame:
        """Each point that its trials reported, of one metric or of all; needs pandas.

        trial, name, step, value (may be NaN or infinite), at; of the attempt that each trial is judged by.
        """
        from berth._frames import metric_frame

        at = path("sweeps", self.id, "export")
        frame = metric_frame(self._transport.call("GET", at, params={"what": "metrics", "format": "csv"}).content)
        return frame if name is None else frame[frame["name"] == name].reset_index(drop=True)

    def to_mlflow(self, *, tracking_uri: Optional[str] = None, experiment: Optional[str] = None) -> dict[int, str]:
        """Writes a run of MLflow for each trial, and returns their ids by the trial's number; needs mlflow.

        Runs have params, tags, status, and the points of the attempt that sweep.dataframe() shows.
        ``tracking_uri`` is MLflow's own default, and ``experiment`` the sweep's name and id, which is made.
        A second call replaces the sweep's runs in the experiment.
        """
        from berth._exports import to_mlflow

        return to_mlflow(self._transport, self.data, tracking_uri, experiment)

    def to_tensorboard(self, directory: Union[str, os.PathLike[str]]) -> Path:
        """Writes a log directory of TensorBoard below this one, and returns it; needs tensorboard.

        Each trial is a run, with its metrics, and its values and state for the tab of hyperparameters.
        A second call replaces them.
        """
        from berth._exports import to_tensorboard

        return to_tensorboard(self._transport, self.id, directory)

    def to_optuna(self, file: Union[str, os.PathLike[str]]) -> Path:
        """Adds the ended trials to an Optuna journal as a new study, and returns the file; needs optuna 5.

        For Optuna's dashboard, plots and terminators: values, curves, constraints and states. Trials that
        failed, were canceled or needed too much memory are FAIL. A second call to the same file is refused
        by Optuna: the study is there.
        """
        from berth._exports import to_optuna

        return to_optuna(self._transport, self.refresh().data, file)

    def plot_history(self, ax: Optional[Axes] = None) -> Axes:
        """Draws the value of each trial, and the best so far; needs matplotlib."""
        from berth._plots import plot_history

        return plot_history(self, ax)

    def plot_parallel(self, ax: Optional[Axes] = None) -> Axes:
        """Draws the parameters of each trial with a value as a line, coloured by it; needs matplotlib."""
        from berth._plots import plot_parallel

        return plot_parallel(self, ax)

    def plot_importance(self, ax: Optional[Axes] = None) -> Axes:
        """Draws how much each parameter decides the value, as the sweep's page does; needs matplotlib.

        Errors: NoResultError with fewer than 20 values: chance alone would rank them.
        """
        from berth._plots import plot_importance

        return plot_importance(self, ax)

    def _trial(self, data: models.Trial) -> Trial:
        return Trial(self._transport, data, self.metric)

    def __repr__(self) -> str:
        return f"<berth.Sweep {self.id[:8]} {self.name!r} {self.state}: {_wait.counts_text(self.data)}>"

    def _repr_html_(self) -> str:
        if not self.ended:
            with suppress(BerthError):  # the sweep as it is; as it was when the server does not answer
                self._look(timeout=5)
        return _html.sweep(self.data, self.url)


class _ReportPage(models.SweepReport):
    """A report as a page of a list, whose rows are trials."""

    @property
    def data(self) -> list[models.ReportTrial]:
        return self.trials
