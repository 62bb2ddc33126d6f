"""Is a finding seen where it is? Our maps and occurrence maps, judged by the part that shows the finding.

    python benchmarks/finding_parts.py runs/birds_multilabel --images 20

Of every test image all findings that are there and called present count. A map's share is how much of its
positive part lies on the part that shows the finding, widened by some pixels; a hit is a peak there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import max_pool2d

from protopfaith.correlation import share_inside
from protopfaith.data import finding_part
from protopfaith.explanation import Explainer, Explanation
from protopfaith.explanation.protopnet_map import own_maps
from protopfaith.training import Run

WIDER = 4  # pixels around a part that still count


def main(arguments: Sequence[str] | None = None) -> None:
    asked = parse(arguments)
    run = Run(asked.run)
    explainer, test = Explainer(run), run.data().test
    rows: dict[str, list[tuple[float, float]]] = {"ours": [], "occurrence map": [], "chance": []}
    for index in range(min(asked.images, len(test))):
        found = explainer.explain(
            test.image(index), players=asked.players, budget=asked.budget, sources=False
        )
        masks = test.mask(index)
        for number in test.shows(index):
            name = explainer.model.class_names[number]
            mask = masks.get(finding_part(name))
            if mask is None or found.findings[number].verdict != "present":
                continue
            mask = wider(mask)
            rows["ours"].append(judged(ours(found, number), mask))
            rows["occurrence map"].append(judged(theirs(explainer, found, test.image(index), number), mask))
            rows["chance"].append((float(mask.double().mean()),) * 2)
    Console().print(table(rows))


def ours(found: Explanation, number: int) -> Tensor:
    """What speaks for a finding, (H, W)."""
    regions = found.findings[number].regions
    assert regions is not None
    values = (regions.sign * regions.values).clamp_min(0)
    return (values / regions.players.sizes)[regions.players.labels]


@torch.no_grad()
def theirs(explainer: Explainer, found: Explanation, pixels: Tensor, number: int) -> Tensor:
    """The occurrence map of the nearest prototype for a finding, (H, W)."""
    model = explainer.model
    image = explainer.open(pixels).input
    distances = model.distances(image[None])[0]
    wanted = (model.prototype_classes == number) & (model.readout()[number] > 0)
    nearest = int(distances.masked_fill(~wanted, torch.inf).argmin())
    return own_maps(model, image, model.distance_maps(image[None])[0], [nearest])[0].cpu().clamp_min(0)


def wider(mask: Tensor) -> Tensor:
    return max_pool2d(mask[None, None].float(), 2 * WIDER + 1, 1, WIDER)[0, 0] > 0


def judged(values: Tensor, mask: Tensor) -> tuple[float, float]:
    """The share of a map that lies on the mask, and whether its peak does."""
    peak = values == values.max()
    return float(share_inside(values, mask)), float((peak & mask).any())


def table(rows: dict[str, list[tuple[float, float]]]) -> Table:
    found = Table(title=f"{len(rows['ours'])} findings that are there and were found")
    for heading in ("map", "share on the part", "peak on the part"):
        found.add_column(heading)
    for name, pairs in rows.items():
        share, hit = torch.tensor(pairs).nanmean(0).tolist() if pairs else (float("nan"),) * 2
        found.add_row(name, f"{share:.3f}", f"{hit:.3f}")
    return found


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run")
    parser.add_argument("--images", type=int, default=20)
    parser.add_argument("--players", type=int, default=8)
    parser.add_argument("--budget", type=int, default=2048)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
