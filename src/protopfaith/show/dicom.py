"""An explanation for an archive of radiographs: a picture and the decided regions, as DICOM files.

Both belong to the study of the image that was explained. Of the patient they carry the identifier and nothing
else: an archive finds name and age by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protopfaith import __version__
from protopfaith.data.dicom_header import find_study
from protopfaith.data.frames import split_frame
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explanation import Explanation
from protopfaith.show.colors import overlay
from protopfaith.show.heat import scale_of, shown_evidence
from protopfaith.writing import atomic

PICTURE, REGIONS = "explanation.dcm", "regions.dcm"
MAKER = "ProtoPFaith"
SERIES = 9000  # number of the first series: far from those of a scanner
LONGEST = 64  # characters of a text in a header
# What links a file to its study, and what a viewer needs to lay regions over the image.
LINKS = ("PatientID", "StudyInstanceUID", "SeriesInstanceUID", "SOPClassUID", "SOPInstanceUID")
GEOMETRY = (
    "Rows",
    "Columns",
    "PatientOrientation",
    "FrameOfReferenceUID",
    "PositionReferenceIndicator",
    "ImagePositionPatient",
    "ImageOrientationPatient",
    "PixelSpacing",
    "SliceThickness",
)
SIDES = ("evidence for the class", "evidence against the class")


def check_dicom() -> Any:
    """highdicom, which is an extra."""
    try:
        import highdicom
    except ImportError as error:
        raise ProtoPFaithError(
            "--dicom needs highdicom; install it with: pip install 'protopfaith[dicom]'."
        ) from error
    return highdicom


def write_dicom(explanation: Explanation, image: Path | str, folder: Path | str) -> list[Path]:
    """Writes the map over the image as a secondary capture, and the decided regions as a segmentation.

    A segmentation is left out where nothing is decided, and of files with several frames.

    Args:
        explanation: of an image that came as a DICOM file
        image: that file
        folder: where to write `explanation.dcm` and `regions.dcm`

    Returns:
        The files that were written.

    Raises:
        ProtoPFaithError: if the image is no DICOM file, or does not say which study it belongs to.
    """
    highdicom = check_dicom()
    path, _ = split_frame(Path(image))
    source = find_study(path)
    made = {PICTURE: _picture(highdicom, explanation, source)}
    sides = _sides(explanation)
    if sides.any() and int(source.get("NumberOfFrames") or 1) == 1:
        made[REGIONS] = _segmentation(highdicom, explanation, _only(source), sides)
    for name, dataset in made.items():
        with atomic(Path(folder) / name) as partial:
            dataset.save_as(partial, enforce_file_format=True)
    return [Path(folder) / name for name in made]


def _only(source: Any) -> Any:
    """The source with what linking and geometry need, and nothing else of the patient or the study."""
    import pydicom

    kept = pydicom.Dataset()
    for name in (*LINKS, *GEOMETRY):
        if name in source:
            setattr(kept, name, source.get(name))
    kept.file_meta = pydicom.dataset.FileMetaDataset()
    kept.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    # They must be there, but may be empty.
    empty = ("PatientName", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "StudyID")
    for name in (*empty, "AccessionNumber", "ReferringPhysicianName"):
        setattr(kept, name, None)
    kept.PatientID = source.get("PatientID")
    return kept


def _uids(explanation: Explanation, source: Any, what: str) -> dict[str, str]:
    """The same explanation of the same image has the same numbers: sent again, it is no second one."""
    from pydicom.uid import generate_uid

    values = explanation.class_map.values.numpy().tobytes().hex()
    known = [str(source.SOPInstanceUID), str(explanation.network["weights_sha256"]), values, what]
    return {
        "series_instance_uid": generate_uid(entropy_srcs=[*known, "series"]),
        "sop_instance_uid": generate_uid(entropy_srcs=[*known, "instance"]),
    }


def _picture(highdicom: Any, explanation: Explanation, source: Any) -> Any:
    """The map over the image, in color."""
    orientation = tuple(source.get("PatientOrientation") or ())
    known = len(orientation) == 2
    dataset = highdicom.sc.SCImage(
        pixel_array=drawn(explanation),
        photometric_interpretation="RGB",
        bits_allocated=8,
        coordinate_system="PATIENT",
        study_instance_uid=source.StudyInstanceUID,
        series_number=SERIES,
        instance_number=1,
        manufacturer=MAKER,
        patient_id=source.get("PatientID"),
        patient_orientation=orientation if known else ("L", "F"),
        **_uids(explanation, source, PICTURE),
    )
    if not known:
        dataset.PatientOrientation = None
    _describe(dataset, explanation)
    _refer(dataset, source)
    burned_in = source.get("BurnedInAnnotation")
    if burned_in:  # what is written into the pixels of the image is in ours, too
        dataset.BurnedInAnnotation = burned_in
    return dataset


def _describe(dataset: Any, explanation: Explanation) -> None:
    weights = str(explanation.network["weights_sha256"])
    share = f"{explanation.precision:.0%}" if np.isfinite(explanation.precision) else "unknown"
    dataset.SeriesDescription = _short(f"{MAKER}: {explanation.title}")
    dataset.ManufacturerModelName = MAKER
    dataset.SoftwareVersions = _short(__version__)
    dataset.DerivationDescription = (
        f"{explanation.title} Shapley values of image regions on a prototype network's output; warm regions "
        "speak for the class, cold ones against it, others are undecided. "
        f"{explanation.evaluations} evaluations, relative error {share}, weights {weights[:16]}. Not for "
        "diagnosis."
    )[:1024]


def _refer(dataset: Any, source: Any) -> None:
    import pydicom

    reference = pydicom.Dataset()
    reference.ReferencedSOPClassUID = source.SOPClassUID
    reference.ReferencedSOPInstanceUID = source.SOPInstanceUID
    dataset.SourceImageSequence = [reference]


def _segmentation(highdicom: Any, explanation: Explanation, source: Any, sides: np.ndarray) -> Any:
    """Regions that speak for the class and regions that speak against it, as two segments."""
    from pydicom.sr.codedict import codes

    algorithm = highdicom.AlgorithmIdentificationSequence(
        name=MAKER, family=codes.DCM.ArtificialIntelligence, version=_short(__version__)
    )
    kept = [number for number in range(len(SIDES)) if sides[..., number].any()]
    segments = [
        highdicom.seg.SegmentDescription(
            segment_number=place + 1,
            segment_label=SIDES[number],
            segmented_property_category=codes.SCT.SpatialAndRelationalConcept,
            segmented_property_type=highdicom.sr.CodedConcept("111030", "DCM", "Image Region"),
            algorithm_type="AUTOMATIC",
            algorithm_identification=algorithm,
        )
        for place, number in enumerate(kept)
    ]
    dataset = highdicom.seg.Segmentation(
        source_images=[source],
        pixel_array=sides[None][..., kept].astype(np.uint8),
        segmentation_type="BINARY",
        segment_descriptions=segments,
        series_number=SERIES + 1,
        instance_number=1,
        manufacturer=MAKER,
        manufacturer_model_name=MAKER,
        software_versions=_short(__version__),
        device_serial_number="0",
        content_label="EVIDENCE",
        content_description=_short(explanation.title),
        **_uids(explanation, source, REGIONS),
    )
    _describe(dataset, explanation)
    return dataset


def drawn(explanation: Explanation) -> np.ndarray:
    """The map of the class over the original image, uint8, (H, W, 3).

    Args:
        explanation: whose map it is
    """
    gray = explanation.original.float().mean(0).numpy() / 255
    evidence = shown_evidence(explanation.class_map).numpy()
    colors = overlay(evidence, scale_of([explanation.class_map]))[_labels(explanation)]
    strength = colors[..., 3:]
    mixed = gray[..., None] * (1 - strength) + colors[..., :3] * strength
    return np.rint(255 * mixed.clip(0, 1)).astype(np.uint8)


def _sides(explanation: Explanation) -> np.ndarray:
    """Decided regions for and against the class, bool, (H, W, 2), in the pixels of the original."""
    evidence = shown_evidence(explanation.class_map).numpy()[_labels(explanation)]
    return np.stack([evidence > 0, evidence < 0], -1)


def _labels(explanation: Explanation) -> np.ndarray:
    """Which region each pixel of the original belongs to."""
    labels = explanation.class_map.flat.players.labels.numpy()
    sizes: Sequence[int] = explanation.original_size
    rows, columns = (
        ((np.arange(size) + 0.5) * labels.shape[axis] / size).astype(int) for axis, size in enumerate(sizes)
    )
    return labels[rows[:, None], columns[None]]


def _short(text: str) -> str:
    return text[:LONGEST]
