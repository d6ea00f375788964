"""Writes event files with TensorBoard's own protos and writer, one for each way
in which a scalar is written, and oracle.json: what TensorBoard's own reader makes
of them. Argument: the directory."""

import json
import math
import pathlib
import sys

import numpy as np
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2, types_pb2
from tensorboard.plugins.scalar import metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util

HERE = pathlib.Path(sys.argv[1])
VALUES = [0.9, -1.5, 0.0, 1e-30, 3e38, math.inf, -math.inf, math.nan]


def content(kind, dtype, v):
    return tensor_pb2.TensorProto(dtype=kind, tensor_shape=tensor_shape_pb2.TensorShapeProto(), tensor_content=np.array(v, dtype).tobytes())


WAYS = {
    "simple_value": lambda v: dict(simple_value=v),
    "float_val": lambda v: dict(tensor=tensor_util.make_tensor_proto(np.float32(v)), metadata=metadata.create_summary_metadata("", "")),
    "double_val": lambda v: dict(tensor=tensor_util.make_tensor_proto(np.float64(v)), metadata=metadata.create_summary_metadata("", "")),
    "content_float": lambda v: dict(tensor=content(types_pb2.DT_FLOAT, np.float32, v), metadata=metadata.create_summary_metadata("", "")),
    "content_double": lambda v: dict(tensor=content(types_pb2.DT_DOUBLE, np.float64, v), metadata=metadata.create_summary_metadata("", "")),
}

oracle = {}
np.seterr(over="ignore")
for way, value in WAYS.items():
    writer = EventFileWriter(str(HERE / way))
    for step, v in enumerate(VALUES):
        event = event_pb2.Event(step=step, wall_time=1764060000 + step)
        event.summary.value.add(tag=f"a/{way}", **value(v))
        if step == 0:  # what is no scalar
            event.summary.value.add(tag="image", image=summary_pb2.Summary.Image(height=1, width=1, encoded_image_string=b"x"))
        writer.add_event(event)
    writer.close()

    accumulator = event_accumulator.EventAccumulator(str(HERE / way), size_guidance={event_accumulator.TENSORS: 0, event_accumulator.SCALARS: 0})
    accumulator.Reload()
    if way == "simple_value":
        oracle[way] = [[e.step, e.wall_time, repr(e.value)] for e in accumulator.Scalars(f"a/{way}")]
    else:
        oracle[way] = [
            [e.step, e.wall_time, repr(float(tensor_util.make_ndarray(e.tensor_proto).item()))] for e in accumulator.Tensors(f"a/{way}")
        ]
    assert len(oracle[way]) == len(VALUES)

(HERE / "oracle.json").write_text(json.dumps(oracle))
