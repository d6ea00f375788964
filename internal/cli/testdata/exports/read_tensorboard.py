"""Reads the directory that `berth sweep export --format tensorboard` wrote with
TensorBoard itself, and asks its plugin of hyperparameters what its tab shows.
Arguments: the oracle's directory, TensorBoard's."""

import json
import math
import pathlib
import sys

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.util import tensor_util

ORACLE = json.loads((pathlib.Path(sys.argv[1]) / "oracle.json").read_text())
LOGS = pathlib.Path(sys.argv[2])

multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0, "hparams": 0})
multiplexer.AddRunsFromDirectory(str(LOGS))
multiplexer.Reload()
runs = {int(name.rsplit("-", 1)[1]): name for name in multiplexer.Runs()}
assert len(runs) == len(ORACLE["trials"]), len(runs)

points = {}
for p in ORACLE["metrics"]:
    if p["counts"]:
        points.setdefault((p["trial"], p["name"]), []).append(p)
for (trial, name), want in points.items():
    events = multiplexer.Tensors(runs[trial], name)
    assert [e.step for e in events] == [p["step"] for p in want], (trial, name)
    for e, p in zip(events, want):
        value = float(tensor_util.make_ndarray(e.tensor_proto).item())
        assert abs(e.wall_time * 1000 - p["at"]) < 1.01, (e.wall_time, p["at"])
        if p["status"] == "finite":
            assert math.isclose(value, p["value"], rel_tol=1e-6)
        elif p["status"] == "nan":
            assert math.isnan(value)
        else:
            assert value == float(p["status"])

# What the tab of hyperparameters lists.
provider = data_provider.MultiplexerDataProvider(multiplexer, str(LOGS))
context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
request_context = RequestContext()
metadata = context.hparams_metadata(request_context, "")
experiment = context.experiment_from_metadata(request_context, "", True, metadata, context.hparams_from_data_provider(request_context, "", 1000))
infos = {i.name: i for i in experiment.hparam_infos}
names = {"lr", "batch", "optimizer", "momentum", "layers", "nesterov", "epochs", "warmup"}
assert names >= set(infos) >= names - {"epochs", "warmup"}, set(infos)  # those that never differ need not be there
assert infos["optimizer"].type == api_pb2.DATA_TYPE_STRING and infos["lr"].type == api_pb2.DATA_TYPE_FLOAT64 and infos["nesterov"].type == api_pb2.DATA_TYPE_BOOL
metrics = {i.name.tag for i in experiment.metric_infos}
assert metrics == {"loss", "val_loss", "berth/value"}, metrics

request = api_pb2.ListSessionGroupsRequest(
    start_index=0, slice_size=1000,
    allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING],
    col_params=[api_pb2.ColParams(metric=i.name) for i in experiment.metric_infos],
)
groups = list_session_groups.Handler(request_context, context, "", request).run().session_groups
assert len(groups) == len(ORACLE["trials"])
STATUS = {"succeeded": api_pb2.STATUS_SUCCESS, "running": api_pb2.STATUS_RUNNING, "waiting": api_pb2.STATUS_UNKNOWN}
for group in groups:
    number = int(group.name.rsplit("-", 1)[1])
    want = ORACLE["trials"][number - 1]
    shown = {}
    for name, value in group.hparams.items():
        shown[name] = getattr(value, value.WhichOneof("kind"))
    assert shown == want["params"], (shown, want["params"])
    assert group.sessions[0].status == STATUS.get(want["cells"]["state"], api_pb2.STATUS_FAILURE)
    values = {m.name.tag: m.value for m in group.metric_values}
    if want["cells"]["value"] is not None:
        assert math.isclose(values["berth/value"], want["cells"]["value"], rel_tol=1e-6)
print(f"TensorBoard reads {len(runs)} runs, and its tab of hyperparameters lists {len(groups)} with {len(infos)} columns")
