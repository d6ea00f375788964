"""Runs Optuna's samplers as bench/search/main.go runs Berth's: on the same tables and functions, in the same order of run times.

Prints one JSON line for each run.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import time
from typing import Any, Callable

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

Values = dict[str, Any]


class Problem:
    """A space with a value and a run time of each of its points, as in main.go.

    A space with conditions is a function that asks for its parameters.
    """

    # With a latency, the regret is of all tried points.
    latency: Callable[[Values], float] | None = None
    far: Callable[[list[Values]], float]

    def __init__(self, name: str, space: Values | Callable[[Any], None], attempt: Callable[[Values, Any], tuple[float, float]], regret: Callable[[Values], float]) -> None:
        self.name, self.space, self.attempt, self.regret = name, space, attempt, regret


def table(data: str, about: Values, latency: bool = False) -> Problem:
    """Reads one of the tables of tables.py, with the latency as a second objective where it is asked for."""
    sizes, seeds = about["sizes"], about["seeds"]
    losses = np.fromfile(f"{data}/{about['name']}.loss", np.float32).reshape(-1, seeds)
    seconds = np.fromfile(f"{data}/{about['name']}.time", np.float32).reshape(-1, seeds)
    means = losses.astype(float).mean(axis=1)
    ordered = np.sort(means)
    space: Values = {}
    for j, size in enumerate(sizes):
        choice = about["cat"][j] or size == 2
        space[f"p{j}"] = CategoricalDistribution(list(range(size))) if choice else IntDistribution(0, size - 1)

    def point(values: Values) -> int:
        return int(np.ravel_multi_index([values[f"p{j}"] for j in range(len(sizes))], sizes))

    def attempt(values: Values, noise: Any) -> tuple[float, float]:
        at, seed = point(values), noise.integers(seeds)
        return float(losses[at, seed]), float(seconds[at, seed])

    def regret(values: Values) -> float:
        return float(np.searchsorted(ordered, means[point(values)])) / len(means)

    problem = Problem(about["name"] + ("_latency" if latency else ""), space, attempt, regret)
    if latency:
        latencies = np.fromfile(f"{data}/{about['name']}.latency", np.float32)
        loss_ranks = np.searchsorted(ordered, means) / len(means)
        latency_ranks = np.searchsorted(np.sort(latencies), latencies) / len(means)
        ranks = np.stack([loss_ranks, latency_ranks], axis=1)
        whole = compute_hypervolume(ranks, np.ones(2))
        problem.latency = lambda values: float(latencies[point(values)])
        problem.far = lambda tried: 1 - compute_hypervolume(ranks[[point(values) for values in tried]], np.ones(2)) / whole

    return problem


def functions() -> list[Problem]:
    """Returns the functions of main.go."""
    alpha = np.array([1, 1.2, 3, 3.2])
    scale = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])
    place = np.array(
        [
            [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
            [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
            [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
            [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
        ]
    )

    def branin(v: Values) -> float:
        x, y = v["x"], v["y"]
        square = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
        return square + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.39788735772973816

    def hartmann(v: Values) -> float:
        x = np.array([v[f"x{j}"] for j in range(6)])
        return float(3.322368011391339 - alpha @ np.exp(-(scale * (x - place) ** 2).sum(axis=1)))

    def mixed(v: Values) -> float:
        c = v["c"]
        lr = (math.log10(v["lr"]) + [1, 3, 2.5][c]) ** 2
        return lr + 0.3 * ((v["width"] - 256) / 128) ** 2 + 0.1 * (v["depth"] - 4) ** 2 + [0.2, 0, 0.5][c]

    def sphere(v: Values) -> float:
        return sum((v[f"x{j}"] - 1) ** 2 for j in range(5))

    def branches(v: Values) -> float:
        rate = math.log10(v["lr"])
        if v["c"] == 0:
            return (rate + 3) ** 2 + 4 * (v["momentum"] - 0.9) ** 2 + 0.1 * (v["depth"] - 4) ** 2
        return (rate + 1) ** 2 + 4 * (v["beta"] - 0.3) ** 2 + 0.3 * ((v["units"] - 256) / 128) ** 2 + 0.2

    def ask_branches(trial: Any) -> None:
        trial.suggest_float("lr", 1e-5, 1, log=True)
        if trial.suggest_categorical("c", [0, 1]) == 0:
            trial.suggest_float("momentum", 0, 1)
            trial.suggest_int("depth", 1, 8)
        else:
            trial.suggest_float("beta", 0, 1)
            trial.suggest_int("units", 16, 512)

    spaces: Values = {
        "branches": (branches, ask_branches),
        "branin": (branin, {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}),
        "sphere5": (sphere, {f"x{j}": FloatDistribution(-5, 5) for j in range(5)}),
        "hartmann6": (hartmann, {f"x{j}": FloatDistribution(0, 1) for j in range(6)}),
        "mixed4": (
            mixed,
            {
                "lr": FloatDistribution(1e-5, 1, log=True),
                "width": IntDistribution(16, 512, step=16),
                "depth": IntDistribution(1, 8),
                "c": CategoricalDistribution([0, 1, 2]),
            },
        ),
    }
    return [
        Problem(name, space, lambda v, noise, f=f: (f(v), math.exp(noise.standard_normal() / 2)), f)
        for name, (f, space) in spaces.items()
    ]


def study(problem: Problem, q: int, trials: int, seed: int) -> Values:
    """Runs Optuna's default sampler with q trials open at once."""
    noise = np.random.default_rng([seed, 99])
    directions = ["minimize"] * (2 if problem.latency else 1)
    runs = optuna.create_study(directions=directions, sampler=optuna.samplers.TPESampler(seed=seed))
    ended: list[Values] = []
    open_trials: list[tuple[float, int, Any, float]] = []
    made, now, spent, half = 0, 0.0, 0.0, math.nan
    best: tuple[float, Values] = (math.inf, {})
    for done in range(trials):
        while made < trials and len(open_trials) < q:
            began = time.perf_counter()
            trial = runs.ask() if callable(problem.space) else runs.ask(problem.space)
            if callable(problem.space):
                problem.space(trial)
            spent += time.perf_counter() - began
            loss, seconds = problem.attempt(trial.params, noise)
            heapq.heappush(open_trials, (now + seconds, made, trial, loss))
            made += 1
        now, _, trial, loss = heapq.heappop(open_trials)
        runs.tell(trial, [loss, problem.latency(trial.params)] if problem.latency else loss)
        ended.append(trial.params)
        if loss < best[0]:
            best = (loss, trial.params)
        if done == trials // 2 - 1:
            half = problem.far(ended) if problem.latency else problem.regret(best[1])
    full = problem.far(ended) if problem.latency else problem.regret(best[1])
    return {"problem": problem.name, "q": q, "by": "optuna", "seed": seed, "half": half, "full": full, "seconds": spent / trials}


def main() -> None:
    """Runs what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--problems", default="")
    parser.add_argument("--q", default="1,8,24")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=60)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with open(f"{args.data}/tables.json") as file:
        described = json.load(file)
    problems = [table(args.data, about) for about in described] + functions()
    problems += [table(args.data, about, True) for about in described if os.path.exists(f"{args.data}/{about['name']}.latency")]
    for problem in problems:
        if args.problems and problem.name not in args.problems.split(","):
            continue
        for q in map(int, args.q.split(",")):
            for seed in range(args.first, args.first + args.seeds):
                print(json.dumps(study(problem, q, args.trials, seed)), flush=True)


main()
