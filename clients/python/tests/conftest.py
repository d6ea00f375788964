"""A real Berth for the tests: `berth dev` with a database, a Temporal and Docker containers of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

import berth

REPOSITORY = Path(__file__).resolve().parents[3]
BUILD = REPOSITORY / ".build"
IMAGE = "berth-examples/python:3.11"

# Of PostgreSQL and Temporal on a busy machine, and of all that must stop.
START_TIMEOUT = 90.0
STOP_TIMEOUT = 60.0

os.environ["MPLBACKEND"] = "Agg"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
for name in ("BERTH_SERVER", "BERTH_TOKEN"):
    os.environ.pop(name, None)


@dataclass
class Server:
    """A `berth dev` that runs."""

    url: str
    directory: Path
    output: Path


@contextmanager
def berth_dev(*flags: str) -> Iterator[Server]:
    """Runs `berth dev` with these flags, and stops all of it, its containers too."""
    directory = Path(tempfile.mkdtemp(prefix="berth-python."))
    directory.chmod(0o755)  # PostgreSQL's own user must pass through
    instance = f"python-{uuid.uuid4().hex[:8]}"
    output = directory / "dev.log"
    command: list[str | Path] = [BUILD / "berth", "dev", "--data-dir", directory, "--instance", instance]
    command += ["--listen", "127.0.0.1:0", "--grace", "2s", *flags]
    environment = {**os.environ, "BERTH_ARTIFACTS": str(directory / "store")}
    with output.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        deadline = time.monotonic() + START_TIMEOUT
        url = directory / "url"
        while not (url.is_file() and url.read_text().strip()):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"berth dev did not start:\n{output.read_text()[-4000:]}")
            time.sleep(0.1)
        yield Server(url.read_text().strip(), directory, output)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
        left = subprocess.run(
            ["docker", "ps", "--all", "--quiet", "--filter", f"label=berth.instance={instance}"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        if left:
            subprocess.run(["docker", "rm", "--force", *left], capture_output=True, check=False)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One Berth for all tests that want no other."""
    for program in ("berth", "temporal"):
        if not (BUILD / program).exists():
            pytest.fail(f".build/{program} is missing; run `make build`")
    with berth_dev() as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[berth.Client]:
    with berth.connect(server.url) as connected:
        yield connected


@pytest.fixture(autouse=True)
def nothing_runs_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ends a test's open sweeps, which would hold the places that the next one needs."""
    client: Optional[berth.Client] = None
    if "server" in request.fixturenames:
        client = request.getfixturevalue("client")
    yield
    if client is not None:
        for sweep in client.sweeps(state=["pending", "running", "paused", "stopping", "canceling"]):
            if sweep.state != "canceling":
                sweep.cancel()
            sweep.wait(progress=False, timeout=60)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[list[float]]:
    """How long the client waited between tries; a test waits a hundredth of it."""
    pauses: list[float] = []
    real = time.sleep
    if "real_time" not in request.keywords:

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            real(seconds / 100)

        monkeypatch.setattr("berth._transport.time.sleep", sleep)
    yield pauses


def spec(script: str, **changes: Any) -> dict[str, Any]:
    """Returns a sweep whose trials run a script of Python with the value of n as its argument."""
    result: dict[str, Any] = {
        "version": 1,
        "name": "python",
        "image": IMAGE,
        "command": ["python3", "-u", "-c", script, "{{n}}"],
        "parameters": [{"name": "n", "values": [1, 3, 2]}],
        "search": {"algorithm": "grid"},
        "objective": {"metric": "score", "goal": "maximize"},
        "metrics": {"source": "stdout"},
        "resources": {"memory": "256MiB"},
        "probe": {"mode": "off"},
    }
    return {**result, **changes}


SLEEP = "import time; time.sleep(300)"
