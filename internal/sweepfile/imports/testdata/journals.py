"""Writes the journals of this folder (pip install optuna==5.0.0)."""

import math

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend


def plain(trial):
    lr = trial.suggest_float("lr", 1e-4, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 4)
    return 1 - abs(math.log10(lr) + 2) / 4 - abs(layers - 2) / 10


def conditional(trial):
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam", None])
    momentum = trial.suggest_float("momentum", 0, 0.95, step=0.05) if optimizer == "sgd" else 0
    units = trial.suggest_int("units", 16, 512, log=True)
    dropout = trial.suggest_float("drop-out", 0, 0.5)
    bias = trial.suggest_categorical("bias", [True, False])
    kernel = trial.suggest_int("kernel", 2, 10, step=2) if bias else 0
    trial.report(math.nan if trial.number == 4 else units / 100, 0)
    if trial.should_prune():
        raise optuna.TrialPruned
    if trial.number == 5:
        raise ValueError
    return math.nan if trial.number == 6 else (units - 100) ** 2 / 1e4 + dropout - momentum + kernel / 100


def create(path, name, directions):
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(path)), study_name=name, directions=directions,
        sampler=optuna.samplers.RandomSampler(seed=3), pruner=optuna.pruners.MedianPruner(n_startup_trials=9))


create("optuna-plain.journal", "digits", ["maximize"]).optimize(plain, n_trials=7)

study = create("optuna-conditional.journal", "nets", ["minimize"])
study.set_metric_names(["val_loss"])
study.enqueue_trial({"optimizer": "sgd", "momentum": 0.9})
study.optimize(conditional, n_trials=14, catch=(ValueError,))

study = create("optuna-conditional.journal", "other", ["maximize", "minimize"])
study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1), n_trials=2)
