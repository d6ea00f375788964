"""From a sweep file to the best trial's model, on a real Berth with real containers."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
from conftest import SLEEP, Server, spec

import berth

TRAIN = """
import json, math, os, sys, time
time.sleep(1)  # long enough to be measured, also on a machine that is busy
n = int(sys.argv[1])
print("training with", n)
os.makedirs("/trial/out/model")
open("/trial/out/model/weights.bin", "w").write("x" * n * 1000000)
open("/trial/out/notes.txt", "w").write("n is %d" % n)
for step in range(1, 6):
    print(json.dumps({"step": step, "score": n - 1 / step, "loss": float("nan") if step == 2 else 1 / step}))
"""


@pytest.fixture(scope="module")
def trained(client: berth.Client) -> berth.Sweep:
    """A sweep of three trials that has ended."""
    return client.submit(spec(TRAIN, name="python-trained")).wait(progress=False, timeout=120)


def test_a_sweep_ends_well(trained: berth.Sweep) -> None:
    assert trained.state == "succeeded", trained.reason
    assert trained.ended
    assert trained.counts.succeeded == 3
    assert [trial.number for trial in trained.trials] == [1, 2, 3]
    assert trained.spec["name"] == "python-trained"
    assert "3 of 3 trials ended" in repr(trained)


def test_the_best_trial_and_its_curves(trained: berth.Sweep) -> None:
    best = trained.best
    assert best.params == {"n": 3}
    assert best.value == pytest.approx(2.8)
    assert best.failure is None
    assert best.seconds is not None and best.seconds > 0
    assert trained.metric_names() == ["loss", "score"]

    assert (trained.best_params, trained.best_value) == (best.params, best.value)

    score = best.metrics()
    assert score.name == "score"
    assert list(score.index) == [1, 2, 3, 4, 5]
    assert score.loc[5] == pytest.approx(2.8)
    loss = best.points("loss")
    assert len(loss) == 5
    assert loss[1][0] == 2 and loss[1][1] != loss[1][1]  # NaN stays a point
    assert best.points("none of its metrics") == []
    assert "training with 3\n" in best.log()
    assert best.attempts()[-1].usage.memory_peak_bytes > 0


def test_a_frame_has_a_row_for_each_trial(trained: berth.Sweep) -> None:
    frame = trained.dataframe()
    assert list(frame.columns) == [
        "number", "state", "value", "params.n", "host", "device", "reserved_bytes", "peak_bytes",
        "device_reserved_bytes", "device_peak_bytes", "seconds", "failure", "message",
    ]  # fmt: skip
    assert frame["number"].tolist() == [1, 2, 3]
    assert frame["params.n"].tolist() == [1, 3, 2]
    assert frame["value"].tolist() == pytest.approx([0.8, 2.8, 1.8])
    assert (frame["reserved_bytes"] == 256 << 20).all()
    assert frame["peak_bytes"].between(1, 256 << 20).all(), frame["peak_bytes"]
    assert frame["host"].notna().all() and frame["failure"].isna().all() and frame["device_peak_bytes"].isna().all()
    assert frame.sort_values("value").iloc[-1]["params.n"] == 3


def test_a_frame_has_the_points_of_all_trials(trained: berth.Sweep) -> None:
    frame = trained.metrics("score")
    assert list(frame.columns) == ["trial", "name", "step", "value", "at"]
    assert list(frame["trial"]) == [number for number in (1, 2, 3) for _ in range(5)]
    assert frame["value"].iloc[-1] == pytest.approx(1.8)  # trial 3 has n=2
    every = trained.metrics()
    assert set(every["name"]) == {"loss", "score"}
    assert every.loc[every["name"] == "loss", "value"].isna().sum() == 3
    assert trained.trials_dataframe().equals(trained.dataframe())


def test_files_are_downloaded_and_held_to_their_checksum(trained: berth.Sweep, tmp_path: Path) -> None:
    best = trained.best
    files = {file.path: file for file in best.files()}
    assert set(files) == {"model/weights.bin", "notes.txt"}

    model = best.download(tmp_path / "best", "model/weights.bin")
    assert model == tmp_path / "best" / "model" / "weights.bin"
    assert model.read_bytes() == b"x" * 3_000_000
    assert hashlib.sha256(model.read_bytes()).hexdigest() == files["model/weights.bin"].sha256
    assert not (tmp_path / "best" / "notes.txt").exists()

    before = model.stat().st_mtime_ns
    assert best.download(tmp_path / "best") == tmp_path / "best"
    assert (tmp_path / "best" / "notes.txt").read_text() == "n is 3"
    assert model.stat().st_mtime_ns == before, "what is there with the right checksum stays"

    model.write_bytes(b"y" * 3_000_000)
    assert best.download(tmp_path / "best", "/trial/out/model") == tmp_path / "best" / "model"
    assert model.read_bytes() == b"x" * 3_000_000, "what is there with another checksum does not"
    # A download that was cut goes on where it was.
    model.rename(model.parent / f".berth-{files['model/weights.bin'].sha256[:16]}.part")
    with (model.parent / f".berth-{files['model/weights.bin'].sha256[:16]}.part").open("r+b") as part:
        part.truncate(1_234_567)
    assert best.download(tmp_path / "best", "model").joinpath("weights.bin").read_bytes() == b"x" * 3_000_000
    assert {path.name for path in (tmp_path / "best").rglob("*")} == {"model", "weights.bin", "notes.txt"}

    with pytest.raises(berth.FilesError, match="no stored file 'other'"):
        best.download(tmp_path, "other")


def test_nothing_is_written_outside_the_directory(trained: berth.Sweep, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "model").symlink_to(tmp_path / "outside")
    with pytest.raises(berth.FilesError, match="outside the directory"):
        trained.best.download(tmp_path / "best")
    assert list((tmp_path / "outside").iterdir()) == []


def test_charts_and_tables_of_notebooks(trained: berth.Sweep) -> None:
    history = trained.plot_history()
    assert history.get_ylabel() == "score"
    assert numpy.shape(history.collections[0].get_offsets()) == (3, 2)
    parallel = trained.plot_parallel()
    assert [label.get_text() for label in parallel.get_xticklabels()] == ["n", "score"]
    assert len(parallel.lines) == 3 + 2
    axes = trained.best.plot()
    trained.trial(1).plot(ax=axes)
    assert len(axes.lines) == 2
    assert [step.trial for step in trained.insight().best][-1] == trained.best.number
    with pytest.raises(berth.NoResultError, match="This needs 20 trials with a value; there are 3"):
        trained.plot_importance()

    assert "python-trained" in trained._repr_html_() and trained.url in trained._repr_html_()
    assert "<td" in trained.best._repr_html_() and "2.8" in trained.best._repr_html_()


def test_a_report_has_all_trials(trained: berth.Sweep) -> None:
    report = trained.report()
    assert report.ended
    assert [trial.number for trial in report.trials] == [1, 2, 3]
    assert report.cores.attempts == 3


def test_a_sweep_is_found_by_id_and_name(client: berth.Client, trained: berth.Sweep) -> None:
    assert client.sweep(trained.id).id == trained.id
    assert client.sweep(trained.id[:8]).id == trained.id
    assert client.sweep("python-tr").id == trained.id
    assert client.sweep("python-tr").spec["version"] == 1
    assert trained.id in [sweep.id for sweep in client.sweeps(state=["succeeded", "failed"], name="python", limit=5)]
    assert client.sweeps(name="python-trained", limit=1)[0].state == "succeeded"
    with pytest.raises(berth.NotFoundError):
        client.sweep("no such sweep")
    with pytest.raises(berth.NotFoundError):
        client.sweep("00000000-0000-0000-0000-000000000000")
    with pytest.raises(berth.NotFoundError):
        trained.trial(99)

    again = client.submit(spec(SLEEP, name="python-trained"))
    with pytest.raises(berth.BerthError, match=f"2 sweeps have a name that begins .*(?s:.*){again.id}"):
        client.sweep("python-trained")


def test_a_sweep_file_is_a_path_a_text_or_a_dict(client: berth.Client, tmp_path: Path) -> None:
    text = """
        version: 1
        name: of a text
        image: berth-examples/python:3.11
        command: [python3, -c, "print(1)", "{{lr}}"]
        parameters: [{name: lr, min: 0.001, max: 0.1}]
        search: {algorithm: random, seed: 7}
        objective: {metric: score, goal: maximize}
        limits: {max_trials: 4}
        metrics: {source: stdout}
        resources: {memory: 256MiB}
    """
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    for given in (text, str(file), file, spec(SLEEP, limits={"max_trials": 4})):
        preview = client.preview(given)
        assert preview.at_once >= 1
        assert preview.why
        assert client.validate(given).valid
    with pytest.raises(FileNotFoundError, match="there is no sweep file 'other.yaml'"):
        client.submit("other.yaml")


def test_everything_that_is_wrong_with_a_sweep_is_said(client: berth.Client, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "version: 1\nname: bad\nimage: x:1\ncommand: [x]\nobjective: {metric: a, goal: best}\n"
        "parameters: [{name: lr, type: float, min: 0, max: 1, log: true}]\n"
    )
    with pytest.raises(berth.InvalidError) as caught:
        client.submit(file)
    error = caught.value
    assert error.status == 422 and error.code == "invalid_spec" and error.request_id
    found = {item.pointer: item for item in error.errors}
    assert "/objective/goal" in found and "/parameters/0/min" in found
    text = str(error)
    assert text.startswith(f"{file} has {len(error.errors)} problems:\n")
    fix = found["/parameters/0/min"]
    assert fix.code == "E_LOG_RANGE"
    assert f"\n  E_LOG_RANGE /parameters/0/min: {fix.detail}" in text
    assert not client.validate(file).valid
    with pytest.raises(berth.InvalidError):
        client.preview({"name": "nothing else"})


def test_the_same_key_is_one_sweep(client: berth.Client) -> None:
    first = client.submit(spec(SLEEP, name="once"), idempotency_key="test-once")
    assert client.submit(spec(SLEEP, name="once"), idempotency_key="test-once").id == first.id
    with pytest.raises(berth.ConflictError) as caught:
        client.submit(spec(SLEEP, name="twice"), idempotency_key="test-once")
    assert caught.value.code == "E_IDEMPOTENCY"


def test_failed_trials_say_why(client: berth.Client) -> None:
    sweep = client.submit(spec("import sys; sys.exit('no data for ' + sys.argv[1])", retry={"max_attempts": 1}))
    sweep.wait(progress=False, timeout=120)
    with pytest.raises(berth.NoResultError, match="no trial .* has a value of score"):
        _ = sweep.best
    frame = sweep.dataframe()
    assert frame["failure"].notna().any()
    failed = next(trial for trial in sweep.trials if trial.failure)
    assert failed.value is None and failed.message
    assert "no data for" in failed.log()
    assert failed.metrics().empty
    again = sweep.rerun_failed(name="again")
    assert again.name == "again" and again.id != sweep.id
    again.cancel().wait(progress=False, timeout=60)
    again.delete()
    with pytest.raises(berth.NotFoundError):
        again.refresh()


def test_a_sweep_is_steered(client: berth.Client, capfd: pytest.CaptureFixture[str]) -> None:
    sweep = client.submit(spec(SLEEP, name="steered", limits={"max_parallel": 1}))
    until(sweep, lambda: sweep.counts.running == 1)
    with pytest.raises(berth.WaitTimeoutError, match="goes on"):
        sweep.wait(timeout=1)
    assert sweep.pause().state == "paused"
    assert sweep.resume().state == "running"
    assert sweep.set_max_parallel(2).data.max_parallel == 2
    running = next(trial for trial in sweep.trials if trial.state == "running")
    assert running.files() == []
    assert sweep.set_note("slow #odd").data.note == "slow #odd" and running.set_note("first").data.note == "first"
    assert [found.id for found in client.sweeps(name="#odd")] == [sweep.id]
    sweep.cancel()
    began = time.monotonic()
    assert sweep.wait(timeout=60).state == "canceled"
    assert time.monotonic() - began < 30
    with pytest.raises(berth.ConflictError):
        sweep.pause()
    assert f"sweep {sweep.id[:8]} canceled: 3 of 3 trials ended, 3 canceled" in capfd.readouterr().err


def test_a_terminal_has_a_bar(trained: berth.Sweep, server: Server) -> None:
    ours, theirs = os.openpty()  # it does not know its width
    script = f"import berth; berth.connect({server.url!r}).sweep({trained.id!r}).wait()"
    environment = {**{name: value for name, value in os.environ.items() if name != "CI"}, "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", script], stderr=theirs, env=environment, check=True, timeout=30)
    os.close(theirs)
    drawn = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert f"\rpython-trained {trained.id[:8]}: 100%|" in drawn
    assert "| 3/3 [" in drawn and "succeeded, best 2.8 (trial 2)" in drawn


def test_an_interrupt_leaves_the_sweep_running(client: berth.Client, server: Server) -> None:
    sweep = client.submit(spec(SLEEP, name="interrupted"))
    script = f"import berth; berth.connect({server.url!r}).sweep({sweep.id!r}).wait()"
    waiting = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    try:
        until(sweep, lambda: sweep.counts.running > 0)
        assert waiting.stderr is not None
        first = waiting.stderr.readline()
        assert first.startswith(f"sweep {sweep.id[:8]} "), "it waits, and says so"
        waiting.send_signal(2)
        _, rest = waiting.communicate(timeout=20)
        assert waiting.returncode != 0
        assert f"stopped waiting; sweep {sweep.id[:8]} goes on" in rest
        assert sweep.refresh().state == "running"
    finally:
        waiting.kill()


def until(sweep: berth.Sweep, reached: object, seconds: float = 60) -> None:
    """Reads a sweep until something is so."""
    assert callable(reached)
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"{sweep!r} in {seconds} s"
        time.sleep(0.1)
        sweep.refresh()
