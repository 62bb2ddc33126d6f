"""A network on images with several findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.findings import evaluate_findings, write_findings
from protopfaith.network import XProtoNet
from protopfaith.training.reference import measure_reference


@pytest.fixture(scope="module")
def data():
    return load_data("birds_multilabel", size=32, train=32, validation=40, test=36)


@pytest.fixture(scope="module")
def model(data) -> XProtoNet:
    torch.manual_seed(0)
    return XProtoNet("small", list(data.classes), 2, 8).eval()


def test_thresholds_are_those_of_the_reference(data, model: XProtoNet, tmp_path: Path) -> None:
    reference = measure_reference(model, data)
    found = evaluate_findings(model, data.test, data.preprocessing, reference, resamples=20)
    assert [one.threshold for one in found.findings] == [rule.threshold for rule in reference.rules]
    assert found.groups == 18
    write_findings(tmp_path, "test", found)
    assert json.loads((tmp_path / "test.json").read_text()) == found.to_dict()
    assert (tmp_path / "test.csv").is_file()
    assert (tmp_path / "test-reliability.png").stat().st_size > 1000


def test_the_reference_keeps_its_rules(data, model: XProtoNet, tmp_path: Path) -> None:
    reference = measure_reference(model, data)
    reference.save(tmp_path)
    again = type(reference).load(tmp_path, reference.weights_sha256)
    assert again.rules == reference.rules
    assert len(again.usual_distances) == len(data.classes)


def test_an_empty_set_is_refused(data, model: XProtoNet) -> None:
    with pytest.raises(ProtoPFaithError, match="no images"):
        evaluate_findings(model, data.test.subset([]), data.preprocessing)
