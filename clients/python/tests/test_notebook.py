"""The notebook of the examples, as a reader runs it."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from conftest import REPOSITORY, Server
from nbclient import NotebookClient

import berth


def test_the_notebook_runs(
    client: berth.Client, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTH_SERVER", server.url)
    monkeypatch.delenv("MPLBACKEND")  # the kernel draws into the notebook
    notebook = nbformat.read(  # type: ignore[no-untyped-call]
        REPOSITORY / "examples" / "notebook.ipynb", as_version=4
    )
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is committed without outputs"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    data = [output.get("data", {}) for output in outputs]
    assert sum("image/png" in shown for shown in data) == 4
    tables = [shown["text/html"] for shown in data if "text/html" in shown]
    assert any("params.lr" in table for table in tables) and any("24 of 24 trials ended" in table for table in tables)
    streams = "".join(output["text"] for output in outputs if output["output_type"] == "stream")
    assert "24/24" in streams and "trial" in streams, "a bar shows how far the sweep is"
    assert "Warning" not in streams
    assert float((tmp_path / "best" / "model.txt").read_text()) ** 2 == pytest.approx(
        client.sweep("notebook").best.value
    )
