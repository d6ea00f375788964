import math
import os
import random
import time

import click
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

CKPT_DIR = "checkpoints"


def make_spirals(n, noise, seed):
    rng = np.random.RandomState(seed)
    t = np.sqrt(rng.rand(n)) * 3 * math.pi
    xs, ys = [], []
    for label in range(3):
        a = t + label * 2 * math.pi / 3
        pts = np.stack([np.cos(a) * t, np.sin(a) * t], axis=1) / 10
        xs.append(pts + noise * rng.randn(n, 2) / 10)
        ys.append(np.full(n, label))
    return torch.tensor(np.concatenate(xs), dtype=torch.float32), torch.tensor(np.concatenate(ys))


class Net(nn.Module):
    def __init__(self, hidden, depth, p):
        super().__init__()
        sizes = [2] + [hidden] * depth
        blocks = []
        for a, b in zip(sizes, sizes[1:]):
            blocks += [nn.Linear(a, b), nn.ReLU(), nn.Dropout(p)]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def evaluate(model, loader, loss_fn, device):
    model.eval()
    loss, right, n = 0.0, 0, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        out = model(x)
        loss += loss_fn(out, y).item() * len(y)
        right += (out.argmax(1) == y).sum().item()
        n += len(y)
    return loss / n, right / n


@click.command(context_settings={"show_default": True})
@click.option("--lr", type=float, default=3e-3, help="Learning rate.")
@click.option("--batch-size", "-b", type=int, default=64)
@click.option("--hidden", type=click.IntRange(4, 1024), default=64, help="Units per layer.")
@click.option("--depth", type=click.IntRange(1, 6), default=2)
@click.option("--dropout", type=float, default=0.0)
@click.option("--weight-decay", type=float, default=0.0)
@click.option("--opt", type=click.Choice(["adam", "sgd"]), default="adam")
@click.option("--epochs", type=int, default=8)
@click.option("--num-workers", type=int, default=0, help="Data loader workers.")
@click.option("--seed", type=int, default=0)
@click.option("--cpu/--no-cpu", default=False, help="Do not use the GPU.")
def main(lr, batch_size, hidden, depth, dropout, weight_decay, opt, epochs, num_workers, seed, cpu):
    """Classify three spirals."""
    random.seed(seed)
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() and not cpu else "cpu"
    print(f"using {device}")

    data = TensorDataset(*make_spirals(600, 0.3, seed))
    train, val = random_split(data, [1400, 400])
    train_loader = DataLoader(train, batch_size=batch_size, shuffle=True, num_workers=num_workers)
    val_loader = DataLoader(val, batch_size=256)

    model = Net(hidden, depth, dropout).to(device)
    kind = torch.optim.Adam if opt == "adam" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=lr, weight_decay=weight_decay)
    loss_fn = nn.CrossEntropyLoss()

    os.makedirs(CKPT_DIR, exist_ok=True)
    best = float("inf")
    for epoch in range(1, epochs + 1):
        start = time.time()
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss_fn(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        val_loss, acc = evaluate(model, val_loader, loss_fn, device)
        print(f"epoch {epoch}: val_loss={val_loss:.4f} acc={acc:.3f} ({time.time() - start:.1f}s)")
        if val_loss < best:
            best = val_loss
            torch.save({"model": model.state_dict(), "epoch": epoch, "val_loss": val_loss}, os.path.join(CKPT_DIR, "best.pt"))


if __name__ == "__main__":
    main()
