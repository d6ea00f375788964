"""PyTorch's DataLoader with worker processes, which hand over batches in /dev/shm.

Images are made as they are asked for. A line an epoch says how much of /dev/shm
was in use at most: it counts as memory of the trial.
"""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 128


class Stripes(Dataset):
    """Noisy stripes, upright or level, made when they are read."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        line = (torch.arange(SIDE) % 16 < 8).float()
        image = line.expand(SIDE, SIDE) if index % 2 else line[:, None].expand(SIDE, SIDE)
        return image.expand(3, SIDE, SIDE) + 0.5 * torch.randn(3, SIDE, SIDE, generator=generator), index % 2


def shared_mib():
    """Returns how much of /dev/shm is in use."""
    disk = os.statvfs("/dev/shm")
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    torch.manual_seed(7)
    data = DataLoader(Stripes(768), args.batch, shuffle=True, num_workers=args.workers)
    model = nn.Sequential(nn.Conv2d(3, 4, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(1, args.epochs + 1):
        right, shared = 0, 0.0
        for x, y in data:
            shared = max(shared, shared_mib())
            scores = model(x)
            loss = loss_of(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == y).sum())
        print(f"epoch={epoch} accuracy={right / len(data.dataset):.4f} shared_mib={shared:.1f}", flush=True)


if __name__ == "__main__":
    main()
