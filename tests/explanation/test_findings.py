"""What is said of several findings."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Settings, explain, explain_prototypes, load_explanation
from protopfaith.explanation.protopnet_map import own_maps
from protopfaith.network import ProtoPNet, XProtoNet
from protopfaith.show.catalog import render_catalog
from protopfaith.training.batches import ResidentImages
from protopfaith.training.projection import project
from protopfaith.training.reference_measurement import measure_reference

QUICK = {"players": 16, "estimator": "exact", "sources": False}


@pytest.fixture
def data(bird_findings: ImageData) -> ImageData:
    return bird_findings


@pytest.fixture(scope="module")
def explainer(bird_findings: ImageData, finding_network: XProtoNet) -> Explainer:
    return Explainer(finding_network, preprocessing=bird_findings.preprocessing, images=bird_findings)


def test_verdicts_are_those_of_the_thresholds(explainer: Explainer, data: ImageData) -> None:
    found = explainer.explain(data.test.image(0), **QUICK)
    rules = measure_reference(explainer.model, data).rules
    for one, rule, p in zip(found.findings, rules, found.probabilities.tolist(), strict=True):
        assert one.probability == pytest.approx(p)
        assert one.verdict == rule.verdict(p)
        assert one.rule == rule
    assert found.title == f"{data.classes[found.target]}: {found.findings[found.target].verdict}"


def test_evidence_for_and_against_adds_up_with_the_average(explainer: Explainer, data: ImageData) -> None:
    found = explainer.explain(data.test.image(1), target="eye mask", **QUICK)
    one = found.findings[found.target]
    assert one.evidence_for >= 0 >= one.evidence_against
    odds = torch.special.logit(found.probabilities.double())[found.target]
    total = one.evidence_for + one.evidence_against + found.closeness.average
    assert total == pytest.approx(float(odds), abs=1e-3)
    assert found.closeness.others == pytest.approx(0)
    assert found.decomposition.total == pytest.approx(float(odds), abs=1e-3)
    assert found.decomposition.rest == pytest.approx(0, abs=1e-6)


def test_maps_of_all_findings_add_up(explainer: Explainer, data: ImageData) -> None:
    found = explainer.explain(data.test.image(2), **QUICK)
    model, image = explainer.model, explainer.open(data.test.image(2)).input
    with torch.no_grad():
        whole, nothing = model(torch.stack([image, torch.zeros_like(image)]))
    scale = explainer.reference.calibrator.temperature
    for number, one in enumerate(found.findings):
        change = float(whole[number] - nothing[number]) / scale(number)
        assert float(one.regions.sign * one.regions.values.sum()) == pytest.approx(change, abs=1e-3)
    mine = found.findings[found.target].regions
    assert torch.allclose(mine.values, found.class_map.values)


def test_prototypes_of_the_finding_are_shown_nearest_first(explainer: Explainer, data: ImageData) -> None:
    found = explainer.explain(data.test.image(0), target=2, **QUICK)
    distances = [one.distance for one in found.evidence]
    assert distances == sorted(distances)
    assert {one.class_index for one in found.evidence} == {2}
    signs = explainer.model.prototype_signs
    assert all((one.weight > 0) == bool(signs[one.prototype] > 0) for one in found.evidence)


def test_one_finding_alone_is_explained(tmp_path: Path) -> None:
    network = XProtoNet("small", ["pneumonia"], 2, 8).eval()
    found = explain(network, torch.rand(3, 32, 32), **QUICK)
    assert found.title.startswith("pneumonia: ")
    assert found.report(tmp_path / "why.html").is_file()
    found.save(tmp_path / "why")
    again = load_explanation(tmp_path / "why")
    assert again.findings[0].rule == found.findings[0].rule
    assert again.title == found.title


@pytest.mark.parametrize("asked", [{"versus": 1}, {"output": "margin"}, {"output": "log_probability"}])
def test_what_findings_do_not_have_is_refused(explainer: Explainer, data: ImageData, asked: dict) -> None:
    with pytest.raises(ProtoPFaithError, match="one by one"):
        explainer.explain(data.test.image(0), target=0, **QUICK, **asked)


def test_a_true_class_is_not_told_of_findings(explainer: Explainer, data: ImageData) -> None:
    assert explainer.explain(data.test.image(0), true_class="eye mask", **QUICK).true_class is None


def test_classes_have_no_findings() -> None:
    network = ProtoPNet("small", ["cat", "dog"], 1, 8).eval()
    assert explain(network, torch.rand(3, 32, 32), **QUICK).findings == ()


def test_the_own_map_is_where_the_prototype_looks() -> None:
    network = XProtoNet("small", ["edema"], 4, 8).eval()
    image = torch.rand(3, 48, 48)
    with torch.no_grad():
        maps = own_maps(network, image, network.distance_maps(image[None])[0], [1, 3])
        occurrence = network.occurrence_maps(image[None])[0, [1, 3]]
    assert maps.shape == (2, 48, 48)
    for enlarged, small in zip(maps, occurrence, strict=True):
        row, column = divmod(int(small.argmax()), small.shape[1])
        top, left = (int(place * 48 / small.shape[0]) for place in (row, column))
        assert float(enlarged[top : top + 8, left : left + 8].max()) == pytest.approx(float(enlarged.max()))


def test_prototypes_have_portraits_that_say_what_they_stand_for(
    explainer: Explainer, data: ImageData
) -> None:
    network = copy.deepcopy(explainer.model)
    project(network, ResidentImages(data.train, torch.device("cpu")), data.train, data.preprocessing)
    projected = Explainer(network, preprocessing=data.preprocessing, images=data)
    catalog = explain_prototypes(projected, settings=Settings(players=16, budget=64))
    assert len(catalog.prototypes) == len(network.prototypes)
    assert all(len(one.nearest) for one in catalog.prototypes)
    # An image uses one prototype of each finding, but those that come from it.
    assert sum(one.uses for one in catalog.prototypes) <= len(data.train) * len(data.classes)
    for portrait in catalog.classes:
        own = [one for one in catalog.prototypes if one.class_name == portrait.name and one.weight > 0]
        shares = [one.object_share for one in own]
        assert portrait.object_share == pytest.approx(sum(shares) / len(shares))
    page = render_catalog(catalog)
    assert "(no eye mask)" in page
    assert "<h2>The findings</h2>" in page
    assert "classes" not in page[page.index('class="lead"') : page.index("</header>")]
    assert "the frame is where" not in page  # such a prototype looks at all of an image
