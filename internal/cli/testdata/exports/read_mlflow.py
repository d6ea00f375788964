"""Reads the directory that `berth sweep export --format mlflow` wrote with MLflow
itself and holds it to oracle.json. Arguments: the oracle's directory, MLflow's,
and what a file of trial 1 must hold."""

import json
import math
import os
import pathlib
import sys
import urllib.parse

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # it is in maintenance, and read all the same

from mlflow.tracking import MlflowClient

ORACLE = json.loads((pathlib.Path(sys.argv[1]) / "oracle.json").read_text())
client = MlflowClient(pathlib.Path(sys.argv[2]).as_uri())
experiments = client.search_experiments()
assert len(experiments) == 1, experiments
experiment = experiments[0]
assert experiment.name.startswith("digits "), experiment.name
assert experiment.tags["berth.objective"] == "val_loss", experiment.tags

runs, token = [], None
while True:
    page = client.search_runs([experiment.experiment_id], max_results=100, page_token=token)
    runs += page
    token = page.token
    if not token:
        break
by_number = {int(r.data.tags["berth.trial"]): r for r in runs}
assert len(by_number) == len(runs) == len(ORACLE["trials"])

STATUS = {"succeeded": "FINISHED", "failed": "FAILED", "infeasible": "FAILED", "canceled": "KILLED", "running": "RUNNING", "waiting": "SCHEDULED"}
for want in ORACLE["trials"]:
    cells, run = want["cells"], by_number[want["cells"]["number"]]
    assert run.info.run_name == f"trial-{cells['number']}" and run.info.status == STATUS[cells["state"]], run.info
    assert (run.info.end_time is None) == (cells["finished_at"] is None)
    assert run.data.tags["berth.state"] == cells["state"]
    assert run.data.tags.get("mlflow.note.content") == cells["message"]
    params = {k: v if isinstance(want["params"][k], str) else json.loads(v) for k, v in run.data.params.items()}
    assert params == want["params"], (params, want["params"])
    assert run.data.metrics.get("berth.value") == cells["value"]

points = {}
for p in ORACLE["metrics"]:
    if p["counts"]:
        points.setdefault((p["trial"], p["name"]), []).append(p)
for (trial, name), want in points.items():
    history = client.get_metric_history(by_number[trial].info.run_id, name)
    assert [(m.step, m.timestamp) for m in history] == [(p["step"], p["at"]) for p in want], (trial, name)
    for m, p in zip(history, want):
        if p["status"] == "finite":
            assert m.value == p["value"]
        elif p["status"] == "nan":
            assert math.isnan(m.value)
        else:
            assert m.value == float(p["status"])

# The run with the best value is found by MLflow's own search.
best = client.search_runs([experiment.experiment_id], "metrics.`berth.value` < 1", order_by=["metrics.`berth.value` ASC"], max_results=1)[0]
assert best.data.metrics["berth.value"] == min(t["cells"]["value"] for t in ORACLE["trials"] if t["cells"]["value"] is not None)

first = by_number[1]
artifacts = client.list_artifacts(first.info.run_id)
if len(sys.argv) > 3:
    assert [a.path for a in artifacts] == ["model"], artifacts
    path = pathlib.Path(urllib.parse.urlparse(first.info.artifact_uri).path) / "model" / "weights.bin"
    assert path.read_text() == sys.argv[3]
else:
    assert artifacts == []
print(f"MLflow reads {len(runs)} runs and {sum(map(len, points.values()))} points")
