"""Do explanations point at what defines the class? On the embedded birds that is known.

Only two parts of a bird tell its species; all others are drawn at random. A network that classifies well can
only use those two, so a true explanation puts its evidence there. This prints, for maps of the class's
prototypes on test images and on their source images, the share of positive evidence that lies on the two
defining parts: for our maps, ProtoPNet's own maps, and random ones. Regions are coarser than parts, so no
map can reach 100%: the table also has the best share that maps of the same regions can have.

    python benchmarks/ground_truth.py RUN --images 40 --players 8 --budget 1024
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor

from protopfaith.correlation import share_inside
from protopfaith.data import ImageSet, defining_parts
from protopfaith.explanation import Explainer, Explanation, RegionValues, explain

Shares = dict[str, list[float]]


def main() -> None:
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    explainer = Explainer(arguments.run, device=arguments.device)
    test = explainer.run.data().test  # type: ignore[union-attr]
    chosen = torch.randperm(len(test), generator=torch.Generator().manual_seed(0))[: arguments.images]
    on_test: Shares = defaultdict(list)
    on_source: Shares = defaultdict(list)
    explained: set[int] = set()
    correct = 0
    for index in track(chosen.tolist(), "images", transient=True):
        found = explain(
            explainer,
            test.image(index),
            players=arguments.players,
            budget=arguments.budget,
            estimator=arguments.estimator,
        )
        correct += found.prediction == int(test.labels[index])
        if found.prediction != int(test.labels[index]):
            continue  # then the defining parts of the predicted species are not in the image
        mask = defining_mask(test, index)
        if mask is not None:
            measure(on_test, list(test_maps(found)), mask, found.class_map)
        for one in found.evidence:
            if one.prototype not in explained and one.source_side is not None:
                explained.add(one.prototype)
                images, place = explainer.sources.find(one.prototype)
                mask = defining_mask(images, place)
                if mask is not None:
                    measure(on_source, [(one.source_side.regions, one.source_side.activation)], mask)
    console = Console()
    console.print(f"{correct} of {len(chosen)} test images classified correctly; only those are measured")
    show(console, "prototypes of the class on test images", on_test)
    show(console, f"prototypes on their source images ({len(explained)} prototypes)", on_source)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder of a run on the embedded birds")
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--players", type=int, default=8, help="side of the windows in pixels")
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--estimator", default="default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    return parser.parse_args()


def defining_mask(images: ImageSet, index: int) -> Tensor | None:
    """The visible pixels of the parts that define the species; None where all of them are hidden."""
    masks = images.mask(index)
    parts = [
        masks[part] for part in defining_parts(images.classes[int(images.labels[index])]) if part in masks
    ]
    return torch.stack(parts).any(0) if parts else None


def test_maps(found: Explanation) -> Iterator[tuple[RegionValues, Tensor]]:
    for one in found.evidence:
        yield one.test, one.activation


def measure(
    shares: Shares,
    maps: Sequence[tuple[RegionValues, Tensor]],
    mask: Tensor,
    class_map: RegionValues | None = None,
) -> None:
    """Adds one image's shares, averaged over its prototypes."""
    rows: Shares = defaultdict(list)
    for regions, activation in maps:
        players = regions.flat.players
        labels, sizes = players.labels, players.sizes
        rows["ours, prototypes"].append(regions.share_inside(mask))
        rows["ours, 95th percentile"].append(inside(strongest(regions.map().double().clamp_min(0)), mask))
        flipped = (
            activation.double() - activation.min()
        )  # as generous as can be: its smallest value counts as none
        rows["ProtoPNet's map"].append(inside(flipped, mask))
        rows["ProtoPNet's map, 95th percentile"].append(inside(strongest(flipped), mask))
        means = (
            torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, labels.flatten(), flipped.flatten())
            / sizes
        )
        rows["ProtoPNet's map, as regions"].append(inside(means[labels], mask))
        noise = torch.rand(len(sizes), generator=torch.Generator().manual_seed(len(shares)))
        rows["random regions"].append(inside(noise[labels], mask))
        covered = torch.zeros(len(sizes), dtype=torch.float64).index_add_(
            0, labels.flatten(), mask.flatten().double()
        )
        rows["best that one region can have"].append(float((covered / sizes).max()))
    if class_map is not None:
        rows["ours, class map"].append(class_map.share_inside(mask))
    rows["area of the parts"].append(float(mask.double().mean()))
    for name, values in rows.items():
        shares[name].append(statistics.fmean(values))


def strongest(values: Tensor) -> Tensor:
    """What exceeds the 95th percentile; maps that are cut at equal areas compare at any resolution."""
    return torch.where(values >= torch.quantile(values, 0.95), values, 0.0)


def inside(values: Tensor, mask: Tensor) -> float:
    return float(share_inside(values, mask))


def show(console: Console, title: str, shares: Shares) -> None:
    table = Table(title=title)
    for column in ("map", "share on the defining parts", "standard error", "times the area"):
        table.add_column(column, justify="left" if column == "map" else "right")
    area = statistics.fmean(shares["area of the parts"])
    for name, values in sorted(shares.items(), key=lambda item: -statistics.fmean(item[1])):
        mean = statistics.fmean(values)
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        table.add_row(name, f"{mean:.1%}", f"{error:.1%}", f"{mean / area:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
