"""What needs no server: a space in Python, and the columns of tables."""

from __future__ import annotations

import json

import pytest

import berth
from berth._client import _Document
from berth._frames import metric_frame


def test_a_space_in_python_is_a_list_of_parameters() -> None:
    space = {
        "lr": berth.Float(1e-4, 0.1, log=True),
        "layers": berth.Int(1, 9, step=2),
        "opt": berth.Choice(["adam", "sgd"]),
        "batch": [16, 32],
        "epochs": 5,
        "own": {"expr": "batch * 2"},
    }
    assert json.loads(_Document({"version": 1, "parameters": space}).content)["parameters"] == [
        {"name": "lr", "type": "float", "min": 1e-4, "max": 0.1, "log": True},
        {"name": "layers", "type": "int", "min": 1, "max": 9, "step": 2},
        {"name": "opt", "values": ["adam", "sgd"]},
        {"name": "batch", "values": [16, 32]},
        {"name": "epochs", "value": 5},
        {"name": "own", "expr": "batch * 2"},
    ]


def test_a_point_at_a_whole_second_leaves_the_column_times() -> None:
    table = b"trial,attempt,counts,name,step,value,at\n"
    table += b"1,1,True,loss,1,0.5,2026-11-28T10:00:00.123456Z\n1,1,True,loss,2,0.4,2026-11-28T10:00:01Z\n"
    frame = metric_frame(table)
    assert frame["at"].diff().dt.total_seconds()[1] == pytest.approx(0.876544)
