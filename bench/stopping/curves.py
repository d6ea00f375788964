"""Writes the learning curves of two packages as CSV files into a directory: openclip.csv and lcdb.csv.

Columns: task, run, step (1, 2, ...), value (smaller is better), seconds (of that step alone).

openclip: the OpenCLIP runs of scan-bench 0.2.3 with at least six epochs: the validation loss of each epoch. One task.
    The learning rate follows a schedule that ends at each run's own length. Three runs lack the seconds of their last
    epoch and are left out. A run that failed has a loss of 5.0 in its last epoch; each of them ended before the sixth.
lcdb: the accuracies of lcdb 0.1.0. A task is a data set of OpenML, a run is a learner of scikit-learn, and a step is a
    size of the training set: from 16 up by the root of two, then the largest. The value is 1 - accuracy on validation
    data; value and seconds are means over the splits. A learner is fitted again at each size. Learners that lack a size
    of their data set are left out, and so are data sets with fewer than eight learners.

Licences: scan-bench says MIT in License-Expression and in its LICENSE (2026, AutoML-Freiburg-Hannover); lcdb says MIT
in License and in its LICENSE.txt (2021, Felix Mohr). The CSV files are made on the machine and are no part of Berth.
"""

import csv
import importlib.util
import io
import sys
import tarfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

Curves = dict[tuple[str, str], list[tuple[float, float]]]  # by task and run: value and seconds of each step

LEAST_EPOCHS = 6  # a shorter run has no step near 1/9 and another near 1/3 of its length
LEAST_LEARNERS = 8  # as many as run at once


def openclip() -> Curves:
    """Reads the table of scan-bench without an import, which needs torch."""
    spec = importlib.util.find_spec("scan_bench")
    assert spec and spec.submodule_search_locations
    epochs = defaultdict(list)
    with Path(spec.submodule_search_locations[0], "vlm", "data.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            epochs[row["config_id"]].append((int(row["epoch"]), row["val_loss"], row["train_duration(s)"]))
    curves: Curves = {}
    for run, rows in epochs.items():
        rows.sort()
        if len(rows) < LEAST_EPOCHS or not all(loss and seconds for _, loss, seconds in rows):
            continue
        assert [epoch for epoch, _, _ in rows] == list(range(1, len(rows) + 1)), run
        curves["openclip", run] = [(float(loss), float(seconds)) for _, loss, seconds in rows]
    return curves


def means(rows: Iterable[dict[str, str]]) -> dict[str, dict[str, dict[int, tuple[float, float]]]]:
    """Returns value and seconds by data set, learner and size."""
    sums: dict[tuple[str, str, int], list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for row in rows:
        total = sums[row["openmlid"], row["learner"], int(row["size_train"])]
        total[0] += 1
        total[1] += 1 - float(row["score_valid"])
        total[2] += float(row["traintime"])
    by_task: dict[str, dict[str, dict[int, tuple[float, float]]]] = defaultdict(lambda: defaultdict(dict))
    for (task, learner, size), (splits, value, seconds) in sums.items():
        by_task[task][learner][size] = value / splits, seconds / splits
    return by_task


def lcdb(archive: str) -> Curves:
    """Reads the table inside the source archive."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile("lcdb-0.1.0/lcdb/database-accuracy.csv")
        assert file
        by_task = means(csv.DictReader(io.TextIOWrapper(file, newline="")))
    curves: Curves = {}
    for task, learners in by_task.items():
        sizes = sorted({size for points in learners.values() for size in points})
        whole = {learner: points for learner, points in learners.items() if len(points) == len(sizes)}
        if len(whole) < LEAST_LEARNERS:
            continue
        for learner, points in whole.items():
            curves[task, learner] = [points[size] for size in sizes]
    return curves


def write(path: Path, curves: Curves) -> None:
    """Writes one file under another name, and renames it when it is whole."""
    begun = path.with_suffix(".part")
    with begun.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["task", "run", "step", "value", "seconds"])
        for (task, run), steps in curves.items():
            for step, (value, seconds) in enumerate(steps, 1):
                out.writerow([task, run, step, f"{value:.9g}", f"{seconds:.6g}"])
    begun.rename(path)
    print(f"{path.name}: {len({task for task, _ in curves})} tasks, {len(curves)} runs", file=sys.stderr)


def main(archive: str, out: str) -> None:
    write(Path(out, "openclip.csv"), openclip())
    write(Path(out, "lcdb.csv"), lcdb(archive))


main(*sys.argv[1:])
