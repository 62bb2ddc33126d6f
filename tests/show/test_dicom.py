from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explanation, explain_files
from protopfaith.explanation.picture import to_pil
from protopfaith.show import dicom
from protopfaith.show.heat import shown_evidence
from protopfaith.training import Run

pydicom = pytest.importorskip("pydicom")
pytest.importorskip("highdicom")
from tests.data.dicom_files import write_dicom as write_source  # noqa: E402  (needs pydicom)

STUDY, SERIES = "1.2.826.0.1.3680043.8.498.1", "1.2.826.0.1.3680043.8.498.2"
PRIVATE = {
    "PatientName": "Doe^Jane",
    "PatientBirthDate": "19500101",
    "PatientSex": "F",
    "PatientAge": "070Y",
    "PatientAddress": "1 Main Street",
    "InstitutionName": "Saint Elsewhere",
    "ReferringPhysicianName": "House^Gregory",
    "AccessionNumber": "A-4711",
    "StudyDate": "20200102",
    "OperatorsName": "Roe^Richard",
}


def source(folder: Path, pixels: np.ndarray, **header: Any) -> Path:
    known = {"StudyInstanceUID": STUDY, "SeriesInstanceUID": SERIES, **PRIVATE, **header}
    return write_source(folder / "4711.dcm", pixels, **known)


@pytest.fixture
def image(explanation: Explanation, tmp_path: Path) -> Path:
    """A DICOM file of the size of the image that is explained."""
    return source(tmp_path, np.zeros(explanation.original_size, np.uint8))


@pytest.fixture
def sure(explanation: Explanation) -> Explanation:
    """With regions on both sides that are decided, whatever the network thinks."""
    regions = explanation.class_map
    values = torch.linspace(-1, 1, len(regions.values), dtype=torch.float64)
    errors = torch.full_like(values, 0.1)
    return replace(explanation, class_map=replace(regions, values=values, standard_errors=errors, sure=None))


def test_both_files_belong_to_the_study_and_name_nobody(
    sure: Explanation, image: Path, tmp_path: Path
) -> None:
    written = dicom.write_dicom(sure, image, tmp_path / "out")
    assert [path.name for path in written] == [dicom.PICTURE, dicom.REGIONS]
    origin = pydicom.dcmread(image)
    for path in written:
        found = pydicom.dcmread(path)
        assert (found.StudyInstanceUID, found.PatientID) == (STUDY, origin.PatientID)
        assert found.SeriesInstanceUID != SERIES
        assert found.SourceImageSequence[0].ReferencedSOPInstanceUID == origin.SOPInstanceUID
        everything = str(found)
        assert not [value for value in PRIVATE.values() if len(value) > 1 and value in everything]
        assert found.get("PatientSex") in (None, "")


def test_the_segments_are_the_decided_regions(sure: Explanation, image: Path, tmp_path: Path) -> None:
    _, path = dicom.write_dicom(sure, image, tmp_path)
    found = pydicom.dcmread(path)
    frames = found.pixel_array
    assert [one.SegmentLabel for one in found.SegmentSequence] == list(dicom.SIDES)
    regions = replace(sure.class_map, values=shown_evidence(sure.class_map) * sure.class_map.sign)
    evidence = regions.map(sure.original_size).numpy()
    assert np.array_equal(frames[0] > 0, evidence > 0)
    assert np.array_equal(frames[1] > 0, evidence < 0)


def test_the_picture_is_the_image_where_nothing_is_decided(
    sure: Explanation, image: Path, tmp_path: Path
) -> None:
    path, _ = dicom.write_dicom(sure, image, tmp_path)
    pixels = pydicom.dcmread(path).pixel_array
    assert pixels.shape == (*sure.original_size, 3)
    clear = shown_evidence(sure.class_map).numpy()[dicom._labels(sure)] == 0
    gray = np.rint(sure.original.float().mean(0).numpy())
    assert np.array_equal(pixels[clear], np.repeat(gray[clear][:, None], 3, 1))
    colored = pixels[~clear]
    assert (colored[:, 0] != colored[:, 2]).any()


def test_the_same_explanation_has_the_same_numbers(sure: Explanation, image: Path, tmp_path: Path) -> None:
    first, again = (dicom.write_dicom(sure, image, tmp_path / name) for name in "ab")
    for one, two in zip(first, again, strict=True):
        assert pydicom.dcmread(one).SOPInstanceUID == pydicom.dcmread(two).SOPInstanceUID
    other = replace(sure, class_map=replace(sure.class_map, values=-sure.class_map.values))
    (path, *_) = dicom.write_dicom(other, image, tmp_path / "c")
    assert pydicom.dcmread(path).SOPInstanceUID != pydicom.dcmread(first[0]).SOPInstanceUID


def test_nothing_decided_is_no_segmentation(sure: Explanation, image: Path, tmp_path: Path) -> None:
    unsure = replace(sure.class_map, standard_errors=torch.full_like(sure.class_map.values, 10.0))
    written = dicom.write_dicom(replace(sure, class_map=unsure), image, tmp_path)
    assert [path.name for path in written] == [dicom.PICTURE]


def test_other_files_are_refused(explanation: Explanation, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no DICOM file")
    with pytest.raises(ProtoPFaithError, match=r"x\.png is no DICOM file, so"):
        dicom.write_dicom(explanation, tmp_path / "x.png", tmp_path)
    lost = source(tmp_path, np.zeros((8, 8), np.uint8), StudyInstanceUID="")
    with pytest.raises(ProtoPFaithError, match="no StudyInstanceUID"):
        dicom.write_dicom(explanation, lost, tmp_path)


def test_files_are_written_with_the_case_or_added_to_it(run: Run, tmp_path: Path) -> None:
    pixels = np.asarray(to_pil(run.data().test.image(2)).convert("L"))
    image, png = source(tmp_path, pixels), tmp_path / "x.png"
    to_pil(run.data().test.image(2)).save(png)
    quick: dict[str, Any] = {"players": 16, "budget": 96, "sources": False, "figures": ()}
    plain = explain_files(run, [image], tmp_path / "out", **quick)
    assert not (plain.cases[0] / dicom.PICTURE).exists()
    found = explain_files(run, [image, png], tmp_path / "out", dicom=True, **quick)
    assert found.cases == plain.cases
    assert pydicom.dcmread(found.cases[0] / dicom.PICTURE).PatientID == "4711"
    assert "no DICOM file" in found.failures[0].message
    fresh = explain_files(run, [image], tmp_path / "fresh", dicom=True, **quick)
    assert (fresh.cases[0] / dicom.PICTURE).exists()
    with pytest.raises(ProtoPFaithError, match="leave --dicom or --anonymous out"):
        explain_files(run, [image], tmp_path / "out", dicom=True, anonymous=True, **quick)
