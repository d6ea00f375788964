"""Downloads that bring nothing, and several of one file."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fake import Request, fake_server
from test_trouble import A_SWEEP, A_TRIAL

import berth

pytestmark = pytest.mark.usefixtures("slept")

FILES: dict[str, Any] = {
    "state": "stored",
    "attempt_id": "a",
    "attempt": 1,
    "bytes": 10,
    "files": 1,
    "left_out": 0,
    "left_out_files": [],
    "data": [
        {
            "path": "model.bin",
            "bytes": 10,
            "sha256": hashlib.sha256(b"0123456789").hexdigest(),
            "stored_at": "2026-01-01T00:00:00Z",
        }
    ],
}


@pytest.mark.parametrize("status", [200, 204, 302])
def test_a_download_without_bytes_ends(tmp_path: Path, status: int) -> None:
    """A proxy that sends the login page's address, or nothing, is not asked for ever."""

    def answer(r: Request) -> None:
        where = urlsplit(r.path).path
        if where.endswith("/model.bin"):
            r.begin(status, Content_Length="0", Location="https://login.example/")
        elif where.endswith("/files"):
            r.send(200, FILES)
        else:
            r.send(200, A_TRIAL)

    done: list[BaseException | None] = []
    with fake_server(lambda r: r.send(200, A_SWEEP), answer) as (url, seen):
        sweep = berth.connect(url).submit({"name": "n"})
        trial = sweep.trial(1)

        def download() -> None:
            try:
                trial.download(tmp_path)
            except BaseException as error:
                done.append(error)
            else:
                done.append(None)

        thread = threading.Thread(target=download, daemon=True)
        thread.start()
        thread.join(30)
        calls = len([c for c in seen if c.path.split("?")[0].endswith("/model.bin")])
        running = thread.is_alive()
        sweep._transport.close()
        thread.join(30)
    assert not running, f"it still asks: {calls} times in 30 s"
    assert isinstance(done[0], berth.BerthError)


def test_two_downloads_of_one_file(tmp_path: Path) -> None:
    """ "A client may be used by several threads": two of them fetch the same file into one directory."""
    begun, second_done = threading.Event(), threading.Event()

    def answer(r: Request) -> None:
        where = urlsplit(r.path).path
        if where.endswith("/files"):
            r.send(200, FILES)
        elif not where.endswith("/model.bin"):
            r.send(200, A_TRIAL)
        elif begun.is_set():
            at = int((r.headers.get("Range") or "bytes=0-")[6:-1])
            r.send(206 if at else 200, b"0123456789"[at:])
        else:
            r.begin(200, Content_Length="10")
            r.wfile.write(b"01234")
            r.wfile.flush()
            begun.set()
            second_done.wait(20)
            r.wfile.write(b"56789")

    found: list[BaseException | None] = []
    with fake_server(lambda r: r.send(200, A_SWEEP), answer) as (url, _):
        trial = berth.connect(url).sweep("0").trial(1)

        def first() -> None:
            try:
                trial.download(tmp_path)
                found.append(None)
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=first, daemon=True)
        thread.start()
        assert begun.wait(20)
        trial.download(tmp_path)
        second_done.set()
        thread.join(20)
    assert (tmp_path / "model.bin").read_bytes() == b"0123456789"
    assert found == [None]
