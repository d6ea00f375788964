"""What the client does when the server has too much to do, fails, or is not there."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import Server, berth_dev, spec
from fake import Answer, Call, Line, Request, fake_server, problem

import berth
from berth._events import EventStream
from berth._transport import Pauses, Transport, retry_after

pytestmark = pytest.mark.usefixtures("slept")

HOSTS: dict[str, Any] = {"data": []}
COUNTS = (
    "total", "planned", "waiting", "running", "succeeded", "failed", "infeasible", "canceled", "pruned", "oom_retries",
)  # fmt: skip
A_SWEEP: dict[str, Any] = {
    "id": "s",
    "name": "n",
    "image": "i",
    "image_digest": "d",
    "state": "running",
    "max_parallel": 0,
    "created_by": "me",
    "created_at": "2026-01-01T00:00:00Z",
    "counts": dict.fromkeys(COUNTS, 0),
}
A_TRIAL: dict[str, Any] = {
    "id": "t1",
    "sweep_id": "s",
    "number": 1,
    "state": "succeeded",
    "params": {"lr": 0.1},
    "origin": {"by": "random"},
    "shape_key": "k",
    "created_at": "2026-01-01T00:00:00Z",
    "attempts": 1,
    "failure_kind": "ok",
}
SHA = hashlib.sha256(b"0123456789").hexdigest()


def test_too_many_requests_are_sent_again_when_the_server_asks(slept: list[float]) -> None:
    with fake_server(
        lambda r: r.send(429, problem(429, "exhausted"), Retry_After="7"),
        lambda r: r.send(503, problem(503)),
        lambda r: r.send(200, HOSTS),
    ) as (url, seen):
        assert berth.connect(url).hosts() == []
    assert len(seen) == 3
    assert slept == [7, 1]


def test_a_server_that_stays_busy_is_an_error(slept: list[float]) -> None:
    with fake_server(lambda r: r.send(503, problem(503))) as (url, seen), pytest.raises(berth.BusyError) as caught:
        berth.connect(url).hosts()
    assert len(seen) == 4 and len(slept) == 3
    assert str(caught.value) == "it is unavailable (unavailable)\n  request id r1"


def test_a_lost_answer_is_asked_again_only_where_twice_is_once() -> None:
    with fake_server(Request.cut, lambda r: r.send(201, A_SWEEP)) as (url, seen):
        submitted = berth.connect(url).submit({"name": "n"})
    assert [call.headers["Idempotency-Key"] for call in seen] == [seen[0].headers["Idempotency-Key"]] * 2
    assert [call.body for call in seen] == [b'{"name": "n"}'] * 2

    with fake_server(Request.cut) as (url, seen), pytest.raises(berth.UnreachableError):
        submitted._transport = Transport(url, None)
        submitted.pause()
    assert len(seen) == 1


def test_no_server_is_said_at_once(slept: list[float]) -> None:
    with pytest.raises(berth.UnreachableError, match="no answer from http://127.0.0.1:1: .*is `berth dev`"):
        berth.connect("127.0.0.1:1").hosts()
    assert slept == []


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "::"])
def test_a_wrong_url_is_said(url: str) -> None:
    with pytest.raises(ValueError, match="no URL"):
        Transport(url, None)


def test_what_is_no_berth_is_said() -> None:
    with fake_server(lambda r: r.send(404, b"<html>nginx")) as (url, _), pytest.raises(berth.NotFoundError) as caught:
        berth.connect(url).hosts()
    assert "not as Berth does; is its URL right?" in str(caught.value)
    with fake_server(lambda r: r.send(200, b"<html>")) as (url, _), pytest.raises(berth.BerthError, match="none of Be"):
        berth.connect(url).hosts()


def test_a_newer_server_may_say_more() -> None:
    me = {"name": "x", "role": "emperor", "known_by": "token", "shoe_size": 43}
    with fake_server(lambda r: r.send(200, me)) as (url, _):
        known = berth.connect(url).me()
    assert known.role == "emperor"
    assert known.model_dump()["shoe_size"] == 43


def test_server_and_token_are_those_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_server(lambda r: r.send(200, HOSTS)) as (url, seen):
        monkeypatch.setenv("BERTH_SERVER", url + "/")
        monkeypatch.setenv("BERTH_TOKEN", "berth_of_the_environment")
        berth.connect().hosts()
        berth.connect(token="berth_mine").hosts()
    assert [call.path for call in seen] == ["/api/v1/hosts"] * 2
    sent = [call.headers["Authorization"] for call in seen]
    assert sent == ["Bearer berth_of_the_environment", "Bearer berth_mine"]
    monkeypatch.delenv("BERTH_SERVER")
    assert berth.connect().server == "http://127.0.0.1:8080"
    assert "berth_of" not in repr(berth.connect())


def test_retry_after_is_seconds_or_a_time() -> None:
    assert retry_after("3") == 3
    assert retry_after("Thu, 01 Jan 1970 00:01:40 GMT", now=40) == 60
    assert retry_after("Thu, 01 Jan 1970 00:01:40 GMT", now=400) == 0
    assert retry_after("soon") == 0 and retry_after("") == 0
    pauses = Pauses()
    assert [pauses.next() for _ in range(6)] == [0.5, 1, 2, 4, 8, 10]


def test_events_are_read_as_they_are_written() -> None:
    stream = EventStream(Transport("x", None), "s")
    lines = ": comment", "id: 7", "event: change", "data: a", "data:b", "", "id: 8", "", "event: alive", "data: {}", ""
    assert [(e.kind, e.data) for e in stream.parse(lines)] == [("change", "a\nb"), ("alive", "{}")]
    assert stream.last_id == "8"


def test_a_stream_goes_on_behind_what_was_seen() -> None:
    def two(request: Request) -> None:
        request.begin(200, Content_Type="text/event-stream", Transfer_Encoding="chunked")
        request.wfile.write(b"1a\r\nid: 41\nevent: change\ndata:\r\n4\r\n x\n\n\r\n")
        request.cut()

    with fake_server(two) as (url, seen):
        stream = EventStream(Transport(url, None), "s")
        for _ in range(2):
            with pytest.raises(berth.UnreachableError):
                list(stream.listen())
    assert [call.headers["Last-Event-ID"] for call in seen] == [None, "41"]
    assert seen[0].path == "/api/v1/events?sweep_id=s"


def test_a_list_is_read_to_its_last_page() -> None:
    def page(number: int, cursor: str) -> Answer:
        trial = {**a_trial("http://x").data.model_dump(mode="json", exclude_none=True), "number": number}
        more = {"next_cursor": cursor} if cursor else {}
        return lambda r: r.send(200, {"data": [trial], "total": 3, **more})

    with fake_server(page(1, "a/b"), page(2, "c"), page(3, "")) as (url, seen):
        trials = berth.Sweep(Transport(url, None), berth.models.Sweep.model_validate(A_SWEEP)).trials
    assert [trial.number for trial in trials] == [1, 2, 3]
    sent = [parse_qs(urlsplit(call.path).query) for call in seen]
    assert [call.get("cursor") for call in sent] == [None, ["a/b"], ["c"]]
    assert [call["limit"] for call in sent] == [["500"]] * 3


def a_file(**changes: object) -> dict[str, Any]:
    file = {"path": "model.bin", "bytes": 10, "sha256": SHA, "stored_at": "2026-01-01T00:00:00Z", **changes}
    return {"data": [file], "attempt_id": "a", "attempt": 1, "state": "stored", "files": 1, "bytes": 10, "left_out": 0,
            "left_out_files": []}  # fmt: skip


def a_trial(url: str) -> berth.Trial:
    data = {"id": "t", "sweep_id": "s", "number": 1, "params": {}, "origin": {"by": "random"},
            "shape_key": "k", "state": "succeeded", "attempts": 1, "created_at": "2026-01-01T00:00:00Z"}  # fmt: skip
    return berth.Trial(Transport(url, None), berth.models.Trial.model_validate(data), "score")


def download(tmp_path: Path, listed: dict[str, Any], *answers: Answer) -> tuple[Path, list[Call]]:
    """Downloads a file that a server sends so."""
    trial = a_trial("http://x").data.model_dump(mode="json", exclude_none=True)
    with fake_server(lambda r: r.send(200, trial), lambda r: r.send(200, listed), *answers) as (url, seen):
        return a_trial(url).download(tmp_path, "model.bin"), seen[2:]


def test_a_download_that_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    def half(request: Request) -> None:
        request.begin(200, Content_Length="10")
        request.wfile.write(b"01234")
        request.cut()

    model, seen = download(tmp_path, a_file(), half, lambda r: r.send(206, b"56789"))
    assert model.read_bytes() == b"0123456789"
    assert seen[1].headers["Range"] == "bytes=5-"
    assert seen[1].headers["If-Range"] == f'"{SHA}"'
    assert [path.name for path in tmp_path.iterdir()] == ["model.bin"]


def test_a_download_with_another_checksum_is_thrown_away(tmp_path: Path) -> None:
    with pytest.raises(berth.FilesError, match="thrown away"):
        download(tmp_path, a_file(), lambda r: r.send(200, b"012345678X"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../model.bin", "/etc/model.bin", "a/../../model.bin"])
def test_a_download_stays_in_its_directory(tmp_path: Path, path: str) -> None:
    trial = a_trial("http://x").data.model_dump(mode="json", exclude_none=True)
    with fake_server(
        lambda r: r.send(200, trial), lambda r: r.send(200, a_file(path=path)), lambda r: r.send(200, b"")
    ) as (
        url,
        seen,
    ):
        with pytest.raises(berth.FilesError, match="outside the directory"):
            a_trial(url).download(tmp_path / "in")
        assert len(seen) == 2


@pytest.mark.real_time
def test_files_are_waited_for() -> None:
    trial = a_trial("http://x").data.model_dump(mode="json", exclude_none=True)
    pending = {**a_file(), "data": [], "state": "pending", "problem": "the store does not answer"}
    with fake_server(lambda r: r.send(200, trial), lambda r: r.send(200, pending), lambda r: r.send(200, a_file())) as (
        url,
        _,
    ):
        assert [file.path for file in a_trial(url).files()] == ["model.bin"]
    with (
        fake_server(lambda r: r.send(200, trial), lambda r: r.send(200, pending)) as (url, _),
        pytest.raises(berth.FilesError, match="are not stored yet: the store does not answer"),
    ):
        a_trial(url).files(timeout=0.1)


def test_files_that_are_not_stored_say_why() -> None:
    listed = {**a_file(), "data": [], "state": "off", "problem": "the server has no --artifacts"}
    trial = a_trial("http://x").data.model_dump(mode="json", exclude_none=True)
    with (
        fake_server(lambda r: r.send(200, trial), lambda r: r.send(200, listed)) as (url, _),
        pytest.raises(berth.FilesError, match="are not stored: the server has no --artifacts"),
    ):
        a_trial(url).files()


@pytest.mark.real_time
def test_waiting_outlives_a_lost_server(
    client: berth.Client, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    line = Line(urlsplit(server.url).port or 0)
    try:
        sweep = client.submit(spec("import time; time.sleep(4); print({'score': 1})", name="cut"))
        through = berth.connect(f"http://127.0.0.1:{line.port}").sweep(sweep.id)

        def trouble() -> None:
            time.sleep(1.5)
            line.cut()
            time.sleep(1)
            line.mend()

        cutting = threading.Thread(target=trouble)
        cutting.start()
        assert through.wait(timeout=60).state == "succeeded"
        cutting.join()
    finally:
        line.close()
    written = capfd.readouterr().err
    assert written.count("lost the server") == 1
    assert "3 of 3 trials ended" in written


@pytest.mark.real_time
def test_waiting_needs_no_events(client: berth.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may refuse streams; the client then reads the sweep from time to time."""
    monkeypatch.setattr("berth._wait.EventStream.listen", _refused)
    sweep = client.submit(spec("print({'score': 1})", name="polled"))
    assert sweep.wait(progress=False, timeout=60).state == "succeeded"


def _refused(*_: object) -> Iterator[object]:
    raise berth.UnreachableError("no streams here")
    yield


@pytest.mark.real_time
def test_a_token_is_needed_where_one_was_made() -> None:
    with berth_dev("--no-worker", "--first-token") as guarded:
        words = guarded.output.read_text().split()
        token = next(word for word in words if word.startswith("berth_"))
        with pytest.raises(berth.AccessError) as caught:
            berth.connect(guarded.url).sweeps()
        assert caught.value.status == 401 and caught.value.code == "unauthorized"
        assert token not in str(caught.value)
        with berth.connect(guarded.url, token) as client:
            assert client.sweeps() == []
            assert client.me().role == "admin"
            assert client.server_info().token_needed
