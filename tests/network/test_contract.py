"""Every family keeps the contract, and what keeps it can be explained: also a network unknown here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from protopfaith.data import ImageData, ImageSet, load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation import EXPLAINERS, Options, faithfulness
from protopfaith.explanation import Explainer, decompose, explain
from protopfaith.explanation.saving import load as load_explanation
from protopfaith.moments import Gaussian
from protopfaith.network import (
    FAMILIES,
    NO_CLASS,
    ProtoPNet,
    PrototypeNetwork,
    PrototypeSource,
    adds_up,
    check_contract,
    load,
    outcome_of,
    prune,
    save,
    weights_of,
)
from protopfaith.shapley import Players
from protopfaith.training import load_recipe, train

IMAGE = (3, 48, 48)


class Colors(nn.Module):
    """A prototype is a color, and an image is as far from it as its most similar quarter: no encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.class_names = ("warm", "cold")
        self.in_channels, self.similarity, self.activation = 3, "exponential", "none"
        self.encoder_name = None
        self.register_buffer("prototypes", torch.tensor([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]]))
        self.register_buffer("prototype_classes", torch.tensor([0, 0, 1, 1]))
        self.sources: list[PrototypeSource | None] = [None] * 4

    def distance_maps(self, x: Tensor) -> Tensor:
        patches = nn.functional.avg_pool2d(x, x.shape[-1] // 2)
        return (patches[:, None] - self.prototypes[None, :, :, None, None]).square().sum(2)

    def distances(self, x: Tensor) -> Tensor:
        return self.distance_maps(x).amin((2, 3))

    def similarities(self, distances: Tensor) -> Tensor:
        return torch.exp(-distances)

    def readout(self) -> Tensor:
        return torch.tensor([[1.0, 1, -1, -1], [-1, -1, 1, 1]])

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        weights = self.readout() if rows is None else rows
        return self.similarities(distances) @ weights.T.to(distances)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(self.distances(x))


class Quarrel(Colors):
    """Outputs that are no sums: the nearest prototype of a class alone decides, and none has a class."""

    def __init__(self) -> None:
        super().__init__()
        self.prototype_classes.fill_(NO_CLASS)

    def readout(self) -> None:  # type: ignore[override]
        return None

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        return self.similarities(distances).unflatten(1, (2, 2)).amax(2).mul(5).log_softmax(1)


def build(name: str) -> Any:
    torch.manual_seed(0)
    if name in OWN:
        return OWN[name]().eval()
    network = FAMILIES[name]("small", ["cat", "dog"], 2, 8)
    return network.eval()


OWN = {"colors": Colors, "quarrel": Quarrel}
EVERY = [*sorted(FAMILIES), *OWN]


@pytest.mark.parametrize("name", EVERY)
def test_shapes_and_sums_are_those_of_the_contract(name: str) -> None:
    network: PrototypeNetwork = build(name)
    check_contract(network)
    x = torch.rand(3, *IMAGE)
    with torch.no_grad():
        maps, distances = network.distance_maps(x), network.distances(x)
        assert maps.dim() == 4
        assert torch.allclose(maps.amin((2, 3)), distances, atol=1e-5)
        assert distances.shape == (3, len(network.prototypes))
        assert torch.allclose(network(x), network.logits(distances), atol=1e-5)
        if not adds_up(network):
            return
        sums = network.similarities(distances) @ weights_of(network).T
        assert torch.allclose(network(x), sums, atol=1e-5)
        rows = torch.rand(2, len(network.prototypes))
        assert torch.allclose(
            network.logits(distances, rows), network.similarities(distances) @ rows.T, atol=1e-5
        )


@pytest.mark.parametrize("name", EVERY)
def test_the_decomposition_adds_up_or_there_is_none(name: str) -> None:
    network = build(name)
    if not adds_up(network):
        with pytest.raises(ProtoPFaithError, match="no weighted sums of similarities"):
            decompose(network, torch.zeros(len(network.prototypes)), 0)
        return
    with torch.no_grad():
        distances = network.distances(torch.rand(1, *IMAGE))[0]
        logits = network.logits(distances[None])[0]
    log_p = logits if outcome_of(network) == "several" else logits.log_softmax(0)
    for target in range(len(network.class_names)):
        assert decompose(network, distances, target).total == pytest.approx(float(log_p[target]), abs=1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_it_is_explained_and_reported(name: str, tmp_path: Path) -> None:
    network = build(name)
    image = torch.rand(*IMAGE)
    found = explain(network, image, players=16, estimator="exact", sources=False)
    with torch.no_grad():
        whole, nothing = network(torch.stack([image, torch.zeros(IMAGE)]))
    centered = whole - whole.mean() - nothing + nothing.mean()
    log_p = whole.log_softmax(0) - nothing.log_softmax(0)
    change = centered if adds_up(network) else log_p
    if outcome_of(network) == "several":
        change = whole - nothing
        assert [one.name for one in found.findings] == list(network.class_names)
        for number, one in enumerate(found.findings):
            assert one.probability == pytest.approx(float(whole[number].sigmoid()), abs=1e-5)
            shares = float(one.regions.sign * one.regions.values.sum())
            assert shares == pytest.approx(float(change[number]), abs=1e-3)
    assert float(found.class_map.values.sum()) == pytest.approx(float(change[found.target]), abs=1e-3)
    for name_of, map_ in found.other_maps.items():
        if name_of == "versus":
            difference = log_p[found.target] - log_p[found.rival]
            assert float(map_.values.sum()) == pytest.approx(float(difference), abs=1e-3)
    assert found.report(tmp_path / "why.html").is_file()
    assert found.figure() is not None
    assert repr(Explainer(network))
    found.save(tmp_path / "why")
    assert load_explanation(tmp_path / "why").target == found.target


@pytest.mark.parametrize("name", EVERY)
def test_outputs_that_are_no_sums_have_no_margin_and_no_moments(name: str) -> None:
    network = build(name)
    if adds_up(network):
        return
    image = torch.rand(*IMAGE)
    for asked, words in (({"output": "margin"}, "has no margin"), ({"estimator": "dasp"}, "no rule for the")):
        with pytest.raises(ProtoPFaithError, match=words):
            explain(network, image, players=16, sources=False, **asked)


@pytest.mark.parametrize("name", EVERY)
def test_sources_are_there_or_an_error_says_so(name: str) -> None:
    network = build(name)
    assert len(network.sources) == len(network.prototypes)
    with pytest.raises(ProtoPFaithError, match="no source image"):
        explain(network, torch.rand(*IMAGE), players=16, budget=128)


def images_of(network: PrototypeNetwork, folder: Path) -> ImageData:
    """A few images of the network's own classes or findings."""
    generator = torch.Generator().manual_seed(0)
    for split in ("train", "validation", "test"):
        for kind in network.class_names:
            (folder / split / kind).mkdir(parents=True)
            for number in range(2):
                noise = torch.randint(256, (48, 48, 3), generator=generator, dtype=torch.uint8)
                Image.fromarray(noise.numpy()).save(folder / split / kind / f"{split}{number}.png")
    data = load_data("folder", root=folder, size=48)
    if outcome_of(network) == "one":
        return data
    names = network.class_names

    def found(images: ImageSet) -> ImageSet:
        rows = [tuple(int(images.classes[int(label)] == name) for name in names) for label in images.labels]
        return images.with_findings(rows, names)

    return replace(data, **{key: found(images) for key, images in data.sets().items()})


@pytest.mark.parametrize("name", EVERY)
def test_sources_are_explained_with_their_images(name: str, tmp_path: Path) -> None:
    network = build(name)
    data = images_of(network, tmp_path)
    record = data.train.records[0]
    network.sources = [PrototypeSource(record.path, 0, 0, record.sha256)] * len(network.prototypes)
    explainer = Explainer(network, preprocessing=data.preprocessing, images=data)
    found = explainer.explain(data.test.image(0), players=16, budget=128)
    assert {one.source for one in found.evidence} == {network.sources[0]}
    assert all(one.source_side is not None for one in found.evidence)


@pytest.mark.parametrize("name", EVERY)
def test_images_of_another_kind_are_refused(name: str, tmp_path: Path) -> None:
    network, other = build(name), ProtoPNet("small", ["ant", "bee", "cat"], 1, 8).eval()
    explainer = Explainer(network, images=images_of(other, tmp_path))
    with pytest.raises(ProtoPFaithError, match=r"but the images are of 3 classes; give the images"):
        explainer.explain(torch.rand(*IMAGE), players=16, budget=128, sources=False)


@pytest.mark.parametrize("name", EVERY)
def test_moments_pass_or_an_error_says_so(name: str) -> None:
    network = build(name)
    image = Gaussian(torch.rand(1, *IMAGE), torch.full((1, *IMAGE), 0.01))
    if hasattr(network, "occurrence_maps"):
        with pytest.raises(ProtoPFaithError, match="no moment rule for the pooling"):
            network.distances(image)
        return
    found = network.distances(image)
    assert found.mean.shape == found.variance.shape == (1, len(network.prototypes))
    assert bool((found.variance >= 0).all())


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_it_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    network = build(name)
    network.sources[1] = PrototypeSource("a.png", 1, 2, "0" * 64)
    save(network, tmp_path / "model.safetensors")
    again, _ = load(tmp_path / "model.safetensors")
    x = torch.rand(2, *IMAGE)
    with torch.no_grad():
        assert torch.equal(again(x), network(x))
    assert again.sources == network.sources


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_explainers_are_judged_on_it_and_it_is_pruned_or_says_how(name: str) -> None:
    network = build(name)
    options = Options(Players.windows(IMAGE[1:], 16), budget=256)
    explained = EXPLAINERS["ours"](network, torch.rand(*IMAGE), [0], options)
    assert explained.maps.shape == (1, *IMAGE[1:])
    if not isinstance(network, ProtoPNet):
        with pytest.raises(ProtoPFaithError, match="no single prototypes can be dropped"):
            prune(network, [0])
        return
    smaller = prune(network, [0, 2, 3])
    check_contract(smaller)
    with torch.no_grad():
        x = torch.rand(2, *IMAGE)
        assert torch.allclose(smaller.distances(x), network.distances(x)[:, [0, 2, 3]], atol=1e-6)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_its_run_is_judged(name: str, tmp_path: Path) -> None:
    """The whole judgment, of one prototype: curves, axioms and sanity checks."""
    findings = outcome_of(FAMILIES[name]) == "several"
    data = "birds_multilabel" if findings else "birds"
    small = ["data.size=[32,32]", "data.options={train: 32, validation: 32, test: 32}"]
    short = [f"schedule.{stage}.epochs=1" for stage in ("pretraining", "warmup", "joint", "classifier")]
    recipe = load_recipe(data, [*small, *short, f"model.family={name}", "schedule.cycles=1"])
    run = train(recipe, tmp_path / "run", progress=False)
    quick = {"prototypes": 1, "steps": 5, "players": 8, "budget": 128, "truth_budget": 256, "checked": 1}
    explainers = ["ours", "owen", "protopnet", "saliency", "dasp", "random"]
    found = faithfulness(run, tmp_path / "judged", explainers=explainers, sizes=2, progress=False, **quick)
    judged = {one.name for one in found.results}
    assert judged | found.skipped.keys() == set(explainers)
    assert {"ours", "owen", "random"} <= judged
    assert all("moment rule" in why for why in found.skipped.values())
    assert (tmp_path / "judged" / "index.html").is_file()


def test_protopnet_is_a_family() -> None:
    assert FAMILIES["protopnet"] is ProtoPNet


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("readout", None, "has no readout"),
        ("sources", [], r"sources has the shape \(0,\) and not \(4,\)"),
        ("prototype_classes", torch.zeros(3), r"prototype_classes has the shape \(3,\)"),
    ],
)
def test_what_breaks_the_contract_is_told(part: str, value: Any, words: str) -> None:
    network = Colors()
    if part == "prototype_classes":
        network.prototype_classes = value
    else:
        setattr(network, part, value)
    with pytest.raises(ProtoPFaithError, match=words):
        check_contract(network)
    with pytest.raises(ProtoPFaithError, match=words):
        Explainer(network)


def test_what_wraps_a_network_is_told_apart_from_what_is_none() -> None:
    with pytest.raises(ProtoPFaithError, match=r"DataParallel is no .* its part 'module' is one: give that"):
        check_contract(nn.DataParallel(Colors()))
    with pytest.raises(ProtoPFaithError, match="explain_function explains any other"):
        check_contract(nn.Flatten())


@pytest.mark.parametrize("part", sorted(set(PrototypeNetwork.__annotations__) - {"training"}))
def test_a_network_without_a_part_is_told_which_one(part: str) -> None:
    network = Colors()
    delattr(network, part)
    with pytest.raises(ProtoPFaithError, match=f"it has no {part};"):
        check_contract(network)


class Shifted(ProtoPNet):
    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        return super().logits(distances, rows) + torch.arange(len(self.class_names))


class Deaf(ProtoPNet):
    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        return super().logits(distances)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            Shifted,
            r"logits\(distances\) of Shifted gives other numbers than the similarities times readout\(\)",
        ),
        (Deaf, r"logits\(distances, rows\) of Deaf gives other numbers than .* times the rows"),
    ],
)
def test_outputs_that_are_not_the_sums_that_they_are_said_to_be_are_told(
    kind: type[ProtoPNet], words: str
) -> None:
    network = kind("small", ["cat", "dog"], 2, 8).eval()
    with pytest.raises(ProtoPFaithError, match=words):
        explain(network, torch.rand(3, 32, 32), players=16, budget=100, sources=False)
