"""Training that goes on where it was interrupted.

Berth keeps /trial/checkpoint from one attempt of a trial to the next, and sets
TRIAL_RESUME=1 when something lies there. A checkpoint is written under another
name and then renamed: a process that is killed leaves no half of one. Metrics
are lines of JSON, in which "epoch" is the step: the curve goes on where it was.
The checkpoint has the last metric, too, and it is said again: an attempt that was
killed after its last epoch leaves nothing to train, and the trial has its result.
"""

import argparse
import json
import os

import torch
from torch import nn

CHECKPOINT = "/trial/checkpoint/last.pt"


def save(state):
    torch.save(state, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)


def report(epoch, accuracy):
    print(json.dumps({"epoch": epoch, "accuracy": accuracy}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(7)
    x = torch.randn(20000, 32)
    y = (x @ torch.randn(32) + 0.1 * torch.randn(20000)).sign()

    model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    done = 0

    if os.environ.get("TRIAL_RESUME") == "1" and os.path.exists(CHECKPOINT):
        state = torch.load(CHECKPOINT)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["epoch"]
        print(f"going on after epoch {done}", flush=True)
        report(done, state["accuracy"])

    for epoch in range(done + 1, args.epochs + 1):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.soft_margin_loss(model(x[rows])[:, 0], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = round(float((model(x)[:, 0].sign() == y).float().mean()), 4)
        save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "accuracy": accuracy})
        report(epoch, accuracy)


if __name__ == "__main__":
    main()
