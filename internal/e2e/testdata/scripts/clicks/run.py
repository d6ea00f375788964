import json

import click


@click.command()
@click.option("--lr", type=click.FloatRange(1e-5, 0.1), default=0.01, show_default=True, help="learning rate")
@click.option("-b", "--batch", default=64, help="batch size")
@click.option("--layers", type=click.IntRange(1, 3), default=3)
@click.option("--optimizer", type=click.Choice(["adam", "rmsprop"]), default="adam")
@click.option("--augment/--no-augment", default=True)
@click.option("--tag", multiple=True)
@click.argument("data", default="/data/flowers")
def train(lr, batch, layers, optimizer, augment, tag, data):
    print(json.dumps({"val_loss": abs(lr - 0.003) + layers / 100}))


if __name__ == "__main__":
    train()
