"""What the client makes of answers that are unlike the usual ones."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
from fake import Request, fake_server, problem
from matplotlib.patches import Rectangle
from test_trouble import A_SWEEP, A_TRIAL

import berth


def test_a_delete_that_was_sent_elsewhere_is_no_delete() -> None:
    """A redirect (to https, to a login page) deletes nothing, and so must not look like it."""
    with fake_server(
        lambda r: r.send(200, {**A_SWEEP, "state": "canceled"}),
        lambda r: r.send(302, b"", Location="https://login.example/"),
    ) as (url, _):
        sweep = berth.connect(url).sweep("0")
        with pytest.raises(berth.BerthError):
            sweep.delete()


def test_a_parameter_that_no_trial_has_is_a_column() -> None:
    """dataframe(): "params.* (one column for each parameter; empty where a trial has none)"."""
    spec = {"parameters": [{"name": "lr"}, {"name": "momentum", "when": {"opt": "sgd"}}]}
    with fake_server(
        lambda r: r.send(200, {**A_SWEEP, "spec": spec}),
        lambda r: r.send(200, {"data": [A_TRIAL], "total": 1}),
    ) as (url, _):
        frame = berth.connect(url).sweep("0").dataframe()
    assert [c for c in frame.columns if c.startswith("params.")] == ["params.lr", "params.momentum"]


def test_a_warning_that_is_an_error_says_which_sweep_runs() -> None:
    """With `python -W error` submit() raises, and the sweep runs: submitting it again makes two."""
    warning = {"code": "W_MEMORY_MARKS", "pointer": "", "detail": "no parameter is marked"}
    answer = {**A_SWEEP, "id": "0d4aa000-0000-4000-8000-000000000001", "warnings": [warning]}
    with (
        fake_server(lambda r: r.send(201, answer)) as (url, _),
        warnings.catch_warnings(),
        pytest.raises(berth.BerthWarning) as caught,
    ):
        warnings.simplefilter("error")
        berth.connect(url).submit({"name": "n"})
    assert "0d4aa000" in str(caught.value)


def test_a_token_with_a_newline_is_not_shown() -> None:
    """token=Path("token").read_text(): the secret must not be in an error, which goes to logs and notebooks."""
    with fake_server(lambda r: r.send(200, {"data": []})) as (url, seen):
        assert berth.connect(url, "berth_secret\n").hosts() == []
        assert [call.headers["Authorization"] for call in seen] == ["Bearer berth_secret"]
        for token in ("berth_se\ncret", "berth_sécret", "Bearer berth_secret"):
            with pytest.raises(ValueError, match="the token has a space") as caught:
                berth.connect(url, token)
            assert "cret" not in str(caught.value)


def test_a_call_that_cannot_be_sent_is_no_lost_server() -> None:
    with fake_server(lambda r: r.send(200, A_SWEEP)) as (url, seen):
        with pytest.raises(berth.BerthError, match="cannot be sent") as caught:
            berth.connect(url).submit({"name": "n"}, idempotency_key="a\nb")
        assert not isinstance(caught.value, berth.UnreachableError)
        assert seen == []


ENDED: dict[str, Any] = {**A_SWEEP, "state": "succeeded", "finished_at": "2026-01-01T00:01:00Z"}


def test_the_importance_is_the_one_of_the_server() -> None:
    insight: dict[str, Any] = {
        "trials": 40,
        "from_trial": 1,
        "importance": [{"parameter": "lr", "importance": 0.8, "trials": 40}, {"parameter": "rare", "trials": 3}],
        "importance_of": {"trials": 40, "top_share": 0.25},
        "best": [{"trial": 7, "value": 0.5, "at": "2026-01-01T00:00:00Z"}],
        "rungs": [{"rung": 0, "step": 3, "last_step": 3, "trials": 9, "stopped": 6, "best": 0.5, "cut": 0.7}],
        "origins": [{"by": "gp", "trials": 40}],
    }
    few = {"trials": 1, "top_share": 0.25, "problem": "This needs 20 trials with a value; there is 1."}
    none = {**insight, "importance": [], "importance_of": few}
    with fake_server(*(lambda r, body=body: r.send(200, body) for body in (ENDED, insight, insight, none))) as (url, _):
        sweep = berth.connect(url).sweep("0")
        assert [(rung.step, rung.stopped) for rung in sweep.insight().rungs] == [(3, 6)]
        axes = sweep.plot_importance()
        assert [label.get_text() for label in axes.get_yticklabels()] == ["rare", "lr"]
        assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == [0, 0.8]
        with pytest.raises(berth.NoResultError, match="there is 1"):
            sweep.plot_importance()


def test_several_objectives() -> None:
    """The best trades, and every result beside the value."""
    trial = {**A_TRIAL, "number": 2, "state": "succeeded", "value": 0.9, "results": {"acc": 0.9, "ms": 12.5}}
    broken = {**trial, "number": 3, "results": {"acc": 0.95, "ms": 30.0}, "message": "its ms of 30 is more than 20"}
    del broken["value"]
    sample = {"trials": 2, "top_share": 0.25}
    insight: dict[str, Any] = {
        **{
            "trials": 2,
            "from_trial": 1,
            "importance": [],
            "importance_of": sample,
            "best": [],
            "rungs": [],
            "origins": [],
        },
        "front": [{"trial": 2, "results": trial["results"]}],
    }
    sweep_data = {**ENDED, "spec": {"parameters": [{"name": "lr"}]}}
    answers = (sweep_data, insight, trial, {"data": [trial, broken], "total": 2})
    with fake_server(*(lambda r, body=body: r.send(200, body) for body in answers)) as (url, _):
        sweep = berth.connect(url).sweep("0")
        (best,) = sweep.best_trials
        assert best.results == {"acc": 0.9, "ms": 12.5}
        assert "12.5" in best._repr_html_()
        frame = sweep.dataframe()
        assert list(frame["results.ms"]) == [12.5, 30.0]
        assert list(frame["value"].isna()) == [False, True]


def test_waiting_no_time_for_a_sweep_that_has_ended() -> None:
    """wait(timeout=0) asks whether it has ended."""
    with fake_server(lambda r: r.send(200, ENDED)) as (url, _):
        assert berth.connect(url).sweep("0").wait(progress=False, timeout=0).state == "succeeded"


def test_a_sweep_that_ended_in_time_did() -> None:
    """Without events the client reads the sweep from time to time, and once before it reports that it goes on."""
    over = threading.Event()

    def answer(r: Request) -> None:
        if "/events" in r.path:
            r.send(503, problem(503, "exhausted"))
        else:
            r.send(200, ENDED if over.is_set() else A_SWEEP)

    with fake_server(answer) as (url, _):
        sweep = berth.connect(url).sweep("0")
        timer = threading.Timer(1.0, over.set)  # looks are at 0, 0.5 and 1.5 s; the next one is at 3.5 s
        timer.start()
        try:
            assert sweep.wait(progress=False, timeout=1.3).state == "succeeded"
        finally:
            timer.cancel()


def test_stages() -> None:
    """A list, one of it with its parts and why, and a refused forget."""
    listed: dict[str, Any] = {
        "key": "3f2a91c0" * 8,
        "stage": "base",
        "sweep_id": A_SWEEP["id"],
        "sweep_name": "digits",
        "trial": 4,
        "open_trials": 1,
        "ended_trials": 2,
        "held": True,
    }
    made = {"attempt_id": "a", "host_id": "h", "host_name": "laptop", "made_at": "2026-01-01T00:00:00Z", "seconds": 4.5}
    parts = {"earlier": [], "image": "sha256:1", "command": ["base"], "values": {"width": 32}}
    why = "differs from aaaa0000 (sweep digits, trial 1) in values: width is 32, there it was 16"
    with fake_server(
        lambda r: r.send(200, {"data": [listed], "next_cursor": "c"}),
        lambda r: r.send(200, {"data": [{**listed, "output": made}]}),
        lambda r: r.send(200, {**listed, "parts": parts, "why": why}),
        lambda r: r.send(409, problem(409, "conflict")),
        lambda r: r.send(204, b""),
    ) as (url, seen):
        client = berth.connect(url)
        awaited, there = client.stages("digits")
        assert awaited.output is None and "no output yet" in repr(awaited)
        assert there.output is not None and there.output.seconds == 4.5 and "there" in repr(there)
        assert awaited.why == why
        assert awaited.parts is not None and awaited.parts.values == {"width": 32}
        with pytest.raises(berth.ConflictError):
            there.forget()
        there.forget()
    assert "sweep=digits" in seen[0].path and "cursor=c" in seen[1].path
    assert [call.path for call in seen[2:]] == [f"/api/v1/stages/{listed['key']}"] * 3
