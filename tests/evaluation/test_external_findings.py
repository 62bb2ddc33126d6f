"""Several findings on images from elsewhere."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from protopfaith.data import External, ImageData, Sample
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation import evaluate_external_findings, evaluate_findings
from protopfaith.network import XProtoNet
from protopfaith.training.reference_measurement import measure_reference


@pytest.fixture(scope="module")
def external(bird_findings: ImageData) -> External:
    """The validation images, as if they came from elsewhere."""
    images = bird_findings.validation
    samples = tuple(
        Sample(one.path, "", one.group, {"site": "north" if i % 2 else "south"}, one.findings)
        for i, one in enumerate(images.records)
    )
    return External("clinic", samples, images.image, images.sha256)


def test_scores_are_those_of_the_set_itself(
    bird_findings: ImageData, finding_network: XProtoNet, external: External
) -> None:
    reference = measure_reference(finding_network, bird_findings)
    asked = {"resamples": 20, "seed": 3}
    found = evaluate_external_findings(
        finding_network,
        bird_findings.preprocessing,
        external,
        reference,
        internal=bird_findings.test,
        **asked,
    )
    same = evaluate_findings(
        finding_network, bird_findings.validation, bird_findings.preprocessing, reference, **asked
    )
    assert found.result.to_dict() == same.to_dict()
    assert found.internal is not None
    for here, there in zip(found.result.findings, found.internal.findings, strict=True):
        change = found.differences()[here.name]["auroc"].value
        assert change == pytest.approx(here.auroc.value - there.auroc.value, nan_ok=True)
    assert list(found.parts) == ["site: north", "site: south"]
    assert sum(part.images for part in found.parts.values()) == len(external)


def test_everything_is_written(
    bird_findings: ImageData, finding_network: XProtoNet, external: External, tmp_path: Path
) -> None:
    found = evaluate_external_findings(
        finding_network, bird_findings.preprocessing, external, internal=bird_findings.test, resamples=10
    )
    path = found.save(tmp_path)
    assert json.loads(path.read_text()) == found.to_dict()
    rows = list(csv.DictReader((tmp_path / "external-clinic-images.csv").open()))
    assert len(rows) == len(external)
    name = finding_network.class_names[0]
    for row, image in zip(rows, found.images, strict=True):
        assert float(row[f"probability of {name}"]) == pytest.approx(image.probabilities[0])
        assert row[name] == ("" if image.known[0] < 0 else str(image.known[0]))
    for picture in ("compared", "reliability"):
        assert (tmp_path / f"external-clinic-{picture}.png").stat().st_size > 1000


def test_images_that_are_seen_unreadable_or_unknown_are_left_out(
    bird_findings: ImageData, finding_network: XProtoNet, external: External
) -> None:
    def pixels(index: int) -> torch.Tensor:
        if index == 3:
            raise ProtoPFaithError("broken.png cannot be read.")
        return external.pixels(index)

    nothing = replace(external.samples[1], findings=(-1,) * 6)
    samples = (external.samples[0], nothing, *external.samples[2:])
    broken = replace(external, samples=samples, pixels=pixels)
    seen = {external.sha256(0)}
    found = evaluate_external_findings(
        finding_network, bird_findings.preprocessing, broken, seen=seen, resamples=10
    )
    assert found.result.images == len(external) - 3
    assert found.problems == ["broken.png cannot be read."]
    assert any("trained or chosen" in note for note in found.notes)
    assert any("nothing is known" in note for note in found.notes)
    assert not found.differences()
    failed = next(image for image in found.images if image.error)
    assert failed.probabilities == ()


def test_where_nothing_is_known_it_says_so(
    bird_findings: ImageData, finding_network: XProtoNet, external: External
) -> None:
    empty = replace(external, samples=tuple(replace(one, findings=(-1,) * 6) for one in external.samples))
    with pytest.raises(ProtoPFaithError, match="Nothing is known"):
        evaluate_external_findings(finding_network, bird_findings.preprocessing, empty)


def test_a_finding_that_is_not_known_has_no_scores(
    bird_findings: ImageData, finding_network: XProtoNet, external: External
) -> None:
    some = tuple(replace(one, findings=(-1, *one.findings[1:])) for one in external.samples)
    found = evaluate_external_findings(
        finding_network, bird_findings.preprocessing, replace(external, samples=some), resamples=10
    )
    assert math.isnan(found.result.findings[0].auroc.value)
    assert found.to_dict()["findings"][0]["auroc"]["value"] is None
    known = len(finding_network.class_names) - 1
    assert found.table().row_count == 2 * known + 4  # each with its name, the mean with its name, two sites


def test_the_table_fits_80_letters_with_whole_words(
    bird_findings, finding_network: XProtoNet, external: External
) -> None:
    found = evaluate_external_findings(
        finding_network, bird_findings.preprocessing, external, internal=bird_findings.test, resamples=10
    )
    for table in (found.table(), found.result.table()):
        console = Console(width=80, file=io.StringIO())
        console.print(table)
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert max(map(len, lines)) <= 80
        words = set(" ".join(lines).split())
        assert words >= {"AUROC", "precision", "sensitivity", "specificity"}
        assert words >= set(" ".join(finding_network.class_names).split())
        assert not any("…" in word for word in words)
        for one in found.result.findings:
            ends = (one.sensitivity.low, one.sensitivity.value, one.sensitivity.high)
            assert words >= {f"{value:.3f}" for value in ends if not math.isnan(value)}
