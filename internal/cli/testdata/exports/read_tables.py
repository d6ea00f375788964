"""Reads the tables that `berth sweep export` wrote with pandas and pyarrow: all
formats hold the same. Argument: their directory."""

import math
import pathlib
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(sys.argv[1])
UTC = pa.timestamp("us", tz="UTC")
TIMES = ["created_at", "started_at", "finished_at"]


def check_trials():
    types = {f.name: f.type for f in pq.read_table(HERE / "trials.parquet").schema}
    for name, want in {
        "number": pa.int64(), "id": pa.string(), "value": pa.float64(), "params.lr": pa.float64(), "params.width": pa.int64(),
        "message": pa.string(), "memory_peak_bytes": pa.int64(), "seconds": pa.float64(), "created_at": UTC,
    }.items():
        assert types[name] == want, (name, types[name])

    parquet = pd.read_parquet(HERE / "trials.parquet")
    csv = pd.read_csv(HERE / "trials.csv", parse_dates=TIMES)
    lines = pd.read_json(HERE / "trials.jsonl", lines=True, precise_float=True)
    for name in TIMES:
        lines[name] = pd.to_datetime(lines[name], format="ISO8601")

    assert len(parquet) == 4 and parquet["message"][2] == 'ValueError: "3",\nlook at its log' and math.isnan(parquet["value"][2])
    assert str(parquet["number"].dtype) == "int64" and "datetime64" in str(parquet["created_at"].dtype)

    # A column that has no value at all has no type of its own in CSV and JSON.
    some = [c for c in parquet.columns if parquet[c].notna().any()]
    for other in (csv, lines):
        assert list(other.columns) == list(parquet.columns)
        pd.testing.assert_frame_equal(other[some], parquet[some], check_dtype=False, check_exact=True, check_column_type=False)


def check_metrics():
    rows = pq.read_table(HERE / "metrics.parquet").to_pylist()
    # The word nan of a status is no missing value.
    csv = pd.read_csv(HERE / "metrics.csv", keep_default_na=False, na_values={"value": ["NaN"]}).to_dict("records")
    assert [r["value"] for r in rows][0] == 1 / 3 == csv[0]["value"]
    for row, other in zip(rows, csv, strict=True):
        same = math.isnan if row["status"] == "nan" else lambda v: v == row["value"]
        assert same(row["value"]) and same(other["value"]), (row, other)
        for name in ("trial", "attempt", "counts", "name", "step", "status", "final"):
            assert row[name] == other[name], (name, row, other)
    assert [r["status"] for r in rows] == ["finite", "nan", "infinity", "-infinity"], rows
    assert [math.copysign(math.inf, r["value"]) for r in rows[2:]] == [math.inf, -math.inf]


check_trials()
check_metrics()
