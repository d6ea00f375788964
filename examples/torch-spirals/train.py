"""A multilayer perceptron in PyTorch that tells three spirals apart. The data is made here."""

import math

import click
import torch
from torch import nn


def spirals(count, generator):
    """Returns points on three arms, and which arm each is on."""
    labels = torch.randint(0, 3, (count,), generator=generator)
    radius = torch.rand(count, generator=generator).sqrt()
    angle = radius * 1.5 * math.pi + labels * 2 * math.pi / 3
    points = torch.stack([angle.cos(), angle.sin()], 1) * radius[:, None]
    return points + 0.02 * torch.randn(count, 2, generator=generator), labels


@click.command()
@click.option("--lr", default=0.01)
@click.option("--batch", default=64)
@click.option("--hidden", default=64)
@click.option("--epochs", default=15)
@click.option("--seed", default=7)
@click.option("--out", default="/trial/out/model.pt")
def main(lr, batch, hidden, epochs, seed, out):
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    x, y = spirals(1500, generator)
    x_val, y_val = spirals(500, generator)

    model = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(1, epochs + 1):
        for rows in torch.randperm(len(x), generator=generator).split(batch):
            optimizer.zero_grad()
            loss_of(model(x[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            scores = model(x_val)
        accuracy = (scores.argmax(1) == y_val).float().mean()
        print(f"epoch={epoch} val_loss={loss_of(scores, y_val):.4f} val_accuracy={accuracy:.4f}", flush=True)

    torch.save(model.state_dict(), out)


if __name__ == "__main__":
    main()
