"""Reads the tables that `berth sweep export` wrote with pandas and pyarrow, and
holds them to oracle.json: what the database had. Argument: their directory."""

import datetime
import json
import math
import pathlib
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(sys.argv[1])
ORACLE = json.loads((HERE / "oracle.json").read_text())

UTC = pa.timestamp("us", tz="UTC")
TYPES = {
    "number": pa.int64(), "id": pa.string(), "state": pa.string(), "value": pa.float64(),
    "params.lr": pa.float64(), "params.batch": pa.int64(), "params.optimizer": pa.string(), "params.momentum": pa.float64(),
    "params.layers": pa.int64(), "params.nesterov": pa.bool_(), "params.epochs": pa.int64(), "params.warmup": pa.float64(),
    "failure_kind": pa.string(), "message": pa.string(), "attempts": pa.int64(), "attempt": pa.int64(), "attempt_id": pa.string(),
    "exit_code": pa.int64(), "host": pa.string(), "device": pa.string(), "memory_reserved_bytes": pa.int64(), "memory_peak_bytes": pa.int64(),
    "device_reserved_bytes": pa.int64(), "device_peak_bytes": pa.int64(), "seconds": pa.float64(),
    "created_at": UTC, "started_at": UTC, "finished_at": UTC, "datasets.flowers": pa.string(),
}


def check_trials():
    table = pq.read_table(HERE / "trials.parquet")
    assert [(f.name, f.type) for f in table.schema] == list(TYPES.items()), table.schema
    rows = table.to_pylist()
    assert len(rows) == len(ORACLE["trials"])

    for row, want in zip(rows, ORACLE["trials"]):
        params = {name.removeprefix("params."): v for name, v in row.items() if name.startswith("params.") and v is not None}
        assert params == want["params"], (params, want)
        for name, value in want["cells"].items():
            if name.endswith("_at") and value is not None:
                value = datetime.datetime.fromisoformat(value)
            assert row[name] == value, (name, row[name], value)

    # pandas sees the same in all three.
    parquet = pd.read_parquet(HERE / "trials.parquet")
    csv = pd.read_csv(HERE / "trials.csv", parse_dates=["created_at", "started_at", "finished_at"])
    lines = pd.read_json(HERE / "trials.jsonl", lines=True, precise_float=True)
    for name in ("created_at", "started_at", "finished_at"):
        lines[name] = pd.to_datetime(lines[name], format="ISO8601")
    assert str(parquet["number"].dtype) == "int64" and str(parquet["params.lr"].dtype) == "float64"
    assert str(parquet["params.nesterov"].dtype) == "bool" and "datetime64" in str(parquet["created_at"].dtype)
    # A column that has no value at all has no type of its own in CSV and JSON.
    some = [c for c in parquet.columns if parquet[c].notna().any()]
    for other in (csv, lines):
        assert list(other.columns) == list(parquet.columns)
        pd.testing.assert_frame_equal(other[some], parquet[some], check_dtype=False, check_exact=True, check_column_type=False)
    for name in ("params.lr", "params.momentum", "params.batch", "params.nesterov"):
        assert csv[name].dtype == parquet[name].dtype, name


def check_metrics():
    table = pq.read_table(HERE / "metrics.parquet")
    assert [(f.name, f.type) for f in table.schema] == [
        ("trial", pa.int64()), ("attempt", pa.int64()), ("counts", pa.bool_()), ("name", pa.string()), ("step", pa.int64()),
        ("value", pa.float64()), ("status", pa.string()), ("final", pa.bool_()), ("at", UTC),
    ]
    rows = table.to_pylist()
    assert len(rows) == len(ORACLE["metrics"]) > 0
    # The word nan of a status is no missing value.
    csv = pd.read_csv(HERE / "metrics.csv", keep_default_na=False, na_values={"value": ["NaN"]})
    for row, other, want in zip(rows, csv.to_dict("records"), ORACLE["metrics"]):
        for value in (row["value"], other["value"]):
            if want["status"] == "finite":
                assert value == want["value"]
            elif want["status"] == "nan":
                assert math.isnan(value)
            else:
                assert math.isinf(value) and (value < 0) == (want["status"] == "-infinity")
        for name in ("trial", "attempt", "counts", "name", "step", "status", "final"):
            assert row[name] == want[name] == other[name], (name, row, want)
    print(f"{len(rows)} points and {len(ORACLE['trials'])} trials are the database's own")


check_trials()
check_metrics()
