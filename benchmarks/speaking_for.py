"""Does the map of the predicted class speak for it? What it adds up to, for every output that it may explain.

    python benchmarks/speaking_for.py RUN [--root DATA] [--device cuda] [--images 500]

A map adds up to the output on the image minus the output on the empty image. Counted on correctly classified
test images: how often that is negative, so that a map under the title "Why this class?" would on the whole
speak against it. Images of the class that the empty image is given stand apart: relative to an image
that already is of that class, an image of it need not gain anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from rich.table import Table
from torch import Tensor

from opening import add_network_options, make_console, open_network, spread

console = make_console()


def logit(logits: Tensor, target: Tensor) -> Tensor:
    return logits.gather(1, target[:, None])[:, 0]


def margin(logits: Tensor, target: Tensor) -> Tensor:
    """The logit minus the mean of all logits."""
    return logit(logits, target) - logits.mean(1)


def log_probability(logits: Tensor, target: Tensor) -> Tensor:
    return logit(logits.log_softmax(1), target)


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    others = logits.scatter(1, target[:, None], -torch.inf)
    return logit(logits, target) - others.logsumexp(1)


OUTPUTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "logit": logit,
    "logit minus mean of all": margin,
    "log P": log_probability,
    "log odds": log_odds,
}


@torch.inference_mode()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_network_options(parser)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=500, help="test images, evenly spread")
    parser.add_argument("--batch-size", type=int, default=64)
    options = parser.parse_args(arguments)
    opened = open_network(options)
    model = opened.model.to(options.device)
    test = opened.data.test
    chosen = spread(options.images, len(test))
    logits = []
    for start in range(0, len(chosen), options.batch_size):
        pixels = torch.stack([test.image(i) for i in chosen[start : start + options.batch_size]])
        logits.append(model(opened.preprocessing.normalize(pixels).to(options.device)).double().cpu())
    found = torch.cat(logits)
    nothing = torch.zeros(1, opened.preprocessing.channels, *opened.preprocessing.size, device=options.device)
    empty = model(nothing).double().cpu()
    labels = torch.tensor([test.records[i].label for i in chosen])
    report(found, empty, labels, opened.data.classes)


def report(logits: Tensor, empty: Tensor, labels: Tensor, classes: Sequence[str]) -> None:
    """Prints the table: logits (N, C) of the images, of the empty image (1, C), and the true labels (N,)."""
    right = logits.argmax(1) == labels
    its_class = int(empty.argmax())
    own = labels == its_class
    p = float(empty.softmax(1)[0, its_class])
    console.print(f"{int(right.sum())} of {len(labels)} test images are classified correctly.")
    console.print(f"The empty image is classified as {classes[its_class]} (P = {p:.6f}).")
    table = Table("output", "negative", "of", "smallest", "negative, its class", "of")
    target = logits.argmax(1)
    totals = {name: f(logits, target) - f(empty.expand_as(logits), target) for name, f in OUTPUTS.items()}
    second = logits.argsort(1, descending=True)[:, 1]
    totals["against the next class"] = (logit(logits, target) - logit(logits, second)) - (
        logit(empty.expand_as(logits), target) - logit(empty.expand_as(logits), second)
    )
    for name, total in totals.items():
        others, mine = total[right & ~own], total[right & own]
        smallest = f"{float(others.min()):+.3g}" if len(others) else ""
        counts = [str(int((others < 0).sum())), str(len(others)), smallest]
        table.add_row(name, *counts, str(int((mine < 0).sum())), str(len(mine)))
    console.print(table)


if __name__ == "__main__":
    main()
