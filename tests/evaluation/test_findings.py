"""A network on images with several findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.findings import evaluate_findings, write_findings
from protopfaith.network import XProtoNet
from protopfaith.training.reference_measurement import measure_reference


def test_thresholds_are_those_of_the_reference(
    bird_findings: ImageData, finding_network: XProtoNet, tmp_path: Path
) -> None:
    reference = measure_reference(finding_network, bird_findings)
    found = evaluate_findings(
        finding_network, bird_findings.test, bird_findings.preprocessing, reference, resamples=20
    )
    assert [one.threshold for one in found.findings] == [rule.threshold for rule in reference.rules]
    assert found.groups == 18
    write_findings(tmp_path, "test", found)
    assert json.loads((tmp_path / "test.json").read_text()) == found.to_dict()
    assert (tmp_path / "test.csv").is_file()
    assert (tmp_path / "test-reliability.png").stat().st_size > 1000


def test_the_reference_keeps_its_rules(
    bird_findings: ImageData, finding_network: XProtoNet, tmp_path: Path
) -> None:
    reference = measure_reference(finding_network, bird_findings)
    reference.save(tmp_path)
    again = type(reference).load(tmp_path, reference.weights_sha256)
    assert again.rules == reference.rules
    assert len(again.usual_distances) == len(bird_findings.classes)


def test_an_empty_set_is_refused(bird_findings: ImageData, finding_network: XProtoNet) -> None:
    with pytest.raises(ProtoPFaithError, match="no images"):
        evaluate_findings(finding_network, bird_findings.test.subset([]), bird_findings.preprocessing)
