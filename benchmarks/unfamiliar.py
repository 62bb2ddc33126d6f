"""Are foreign images called unfamiliar, and the network's own ones not?

    python benchmarks/unfamiliar.py RUN [--photographs CUB/images] [--radiographs rsna]
        # a run of any data and family; photographs of classes that it knows are left out
    python benchmarks/unfamiliar.py --without 0,1 --out FOLDER  # trains on birds without two of the species

For each kind of image: the share that is called unfamiliar, by the nearest prototype alone (as earlier
versions did) and by all distances; and the share that is sure (a probability of 95% or more) and not called
unfamiliar, which is what nobody should be shown. The rule was chosen by the kinds that are marked so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from rich.table import Table
from torch import Tensor

from foreign_images import (
    CHOSEN_ON,
    JUDGED_ON,
    bird_of_no_species,
    birds_without,
    drawn,
    photographs,
)
from opening import make_console
from protopfaith.data import ImageData, load_data
from protopfaith.explanation.familiarity import is_unfamiliar, nearness
from protopfaith.network import PrototypeNetwork, outcome_of, probabilities
from protopfaith.training import Run, load_recipe, train
from protopfaith.training.calibration import as_calibrator
from protopfaith.training.reference import Reference
from protopfaith.training.reference_measurement import measure_reference
from protopfaith.training.typical import traits

SURE = 0.95
BATCH = 64
BIRDS = ("birds", "birds_multilabel")
FURTHER = (1, 2)  # seeds of birds that no network was trained on


def main() -> None:
    options = _options()
    whole = load_data("birds") if options.run is None else Run(options.run).data()
    left_out = [int(one) for one in options.without.split(",")] if options.without else []
    data = birds_without(whole, left_out) if left_out else whole
    if options.run is None:
        train(load_recipe("birds"), options.out, data=data)
    model = Run(options.run or options.out).model().eval()
    reference = measure_reference(model, data)
    table = Table(
        "images", "n", "sure", "unfamiliar before", "unfamiliar", "sure, not caught before", "not caught"
    )
    for name, pixels in _images(data, whole, left_out, options):
        if not len(pixels):  # nothing is left of a folder whose classes the network knows
            continue
        table.add_row(name, str(len(pixels)), *_rates(model, data, reference, pixels))
    make_console().print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", help="a run of any data and family")
    parser.add_argument("--without", default="", help="numbers of species that a new network never sees")
    parser.add_argument("--out", type=Path, default=Path("runs/without"), help="folder of that network")
    parser.add_argument("--photographs", type=Path, help="a folder of photographs, such as CUB's")
    parser.add_argument("--radiographs", type=Path, help="a folder of radiographs, such as RSNA's")
    return parser.parse_args()


def _images(
    data: ImageData, whole: ImageData, left_out: list[int], options: argparse.Namespace
) -> Iterator[tuple[str, Tensor]]:
    own, prepare = data.test.uint8(), data.preprocessing
    yield "own test images", own
    if options.run is None or Run(options.run).recipe().data.name in BIRDS:
        yield from _birds(data, whole, left_out)
    yield "inverted", 255 - own
    yield "blurred", _blurred(own)
    yield "upside down", own.flip(2)
    for kind in JUDGED_ON:
        yield kind.__name__.replace("_", " "), drawn(kind, prepare)
    for kind in CHOSEN_ON:
        yield f"{kind.__name__.replace('_', ' ')} (chosen on)", drawn(kind, prepare)
    yield "birds of no species", drawn(bird_of_no_species, prepare, 200, 2)
    if options.photographs:
        yield "photographs", photographs(options.photographs, prepare, 7, 300, data.classes)
        yield "photographs (chosen on)", photographs(options.photographs, prepare, 0, 150, data.classes)
    if options.radiographs:
        yield "radiographs", photographs(options.radiographs, prepare, 0, 200, data.classes)


def _birds(data: ImageData, whole: ImageData, left_out: list[int]) -> Iterator[tuple[str, Tensor]]:
    """More of the embedded birds: of the species that the network knows, and of those left out."""
    further = [load_data(BIRDS[0 if data.outcome == "one" else 1], seed=seed) for seed in FURTHER]
    kept = [birds_without(one, left_out) if left_out else one for one in further]
    yield "further images of the species", torch.cat([one.test.uint8() for one in kept])
    if left_out:
        mine = [i for i, label in enumerate(whole.test.labels.tolist()) if label in left_out]
        yield "species that were left out", whole.test.uint8()[mine]


def _blurred(pixels: Tensor) -> Tensor:
    from torchvision.transforms.v2.functional import gaussian_blur

    return gaussian_blur(pixels, [21, 21], [5.0, 5.0])


@torch.no_grad()
def _rates(model: PrototypeNetwork, data: ImageData, reference: Reference, pixels: Tensor) -> list[str]:
    found: dict[str, list[bool]] = {"sure": [], "before": [], "now": []}
    for batch in pixels.split(BATCH):
        inputs = data.preprocessing.normalize(batch)
        maps = model.distance_maps(inputs)
        distances = maps.amin(dim=(-2, -1))
        logits = as_calibrator(reference.calibrator)(model.logits(distances))
        labels = logits.argmax(1)
        numbers = traits(model, inputs, maps, labels)
        sure = [probabilities(one, outcome_of(model)).amax() >= SURE for one in logits]
        found["sure"] += [bool(one) for one in sure]
        for name, known in (("before", replace(reference, typical=None)), ("now", reference)):
            for one in range(len(batch)):
                near = nearness(model, distances[one], numbers[one], int(labels[one]), known)
                found[name].append(bool(is_unfamiliar(*near)))
    sure, before, now = (torch.tensor(found[name]) for name in ("sure", "before", "now"))
    shares = (sure, before, now, sure & ~before, sure & ~now)
    return [f"{float(share.double().mean()):.3f}" for share in shares]


if __name__ == "__main__":
    main()
