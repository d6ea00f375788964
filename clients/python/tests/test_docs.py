"""docs/python.md is a program that runs, and has all that the package has."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Optional

import pytest
from conftest import REPOSITORY, Server

import berth

PAGE = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8")

SWEEP = """
version: 1
name: digits
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, sys, time
    time.sleep(3)  # so that the page can cancel a copy before it has ended
    open("/trial/out/model.txt", "w").write(sys.argv[1])
    for step in (1, 2):
        print(json.dumps({"step": step, "score": step * float(sys.argv[1])}))
  - "{{lr}}"
parameters: [{name: lr, values: [0.1, 0.2]}]
search: {algorithm: grid}
objective: {metric: score, goal: maximize}
metrics: {source: stdout}
resources: {memory: 256MiB}
probe: {mode: 'off'}
"""


@pytest.mark.filterwarnings("ignore::berth.BerthWarning")
def test_the_page_is_a_program_that_runs(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    clone = berth.Sweep.clone

    def begun(sweep: berth.Sweep, name: Optional[str] = None) -> berth.Sweep:
        """Clones a sweep and waits until it runs: on a busy machine a new sweep refuses a pause."""
        copy = clone(sweep, name)
        while copy.refresh().counts.running == 0:
            time.sleep(0.05)
        return copy

    monkeypatch.setattr(berth.Sweep, "clone", begun)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTH_SERVER", server.url)
    Path("sweep.yaml").write_text(SWEEP)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/python.md", "exec"), names)
    assert Path("best", "model.txt").read_text() == "0.2"
    problem = re.findall(r"```\n(the sweep has .*?)```", PAGE, re.DOTALL)
    assert problem and problem[0] in capsys.readouterr().out, "the page shows what is printed"


@pytest.mark.parametrize("thing", [berth.Client, berth.Stage, berth.Sweep, berth.Trial])
def test_the_page_has_everything(thing: type) -> None:
    missing = [name for name in vars(thing) if not name.startswith("_") and not re.search(rf"\b{name}\b", PAGE)]
    assert missing == [], thing.__name__


def test_the_page_names_every_exception() -> None:
    assert [name for name in berth.__all__ if name not in PAGE and name.endswith(("Error", "Warning"))] == []
