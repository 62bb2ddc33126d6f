"""RSNA pneumonia: chest X-rays, pneumonia and healthy only, as official DICOM files or as pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from protopfaith.data.disk import Known, load_listing
from protopfaith.data.folder import default_preprocessing, list_folder
from protopfaith.data.groups import people
from protopfaith.data.imagedata import ImageData
from protopfaith.data.listing import (
    Box,
    Entry,
    Listing,
    check_all_there,
    check_once,
    unlisted_note,
)
from protopfaith.data.registry import DATASETS, Fold, Size, as_size
from protopfaith.data.roots import RSNA as WHERE
from protopfaith.data.roots import RSNA_OFFICIAL, check_rsna
from protopfaith.data.splits import connected, deal, with_fold
from protopfaith.data.table import read_table
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder

IMAGES, BOXES, DETAILS = RSNA_OFFICIAL
CLASSES = ("healthy", "pneumonia")
LABELS = {"normal": "healthy", "healthy": "healthy", "lung opacity": "pneumonia", "pneumonia": "pneumonia"}
# The third official class is neither; the paper leaves it out.
IGNORED = "no lung opacity / not normal"

Patient = Mapping[str, Any]


@DATASETS.register("rsna")
def load_rsna(*, root: Path | None, size: Size, seed: int, fold: Fold, skip_unreadable: bool) -> ImageData:
    """RSNA: healthy against pneumonia, one channel; official DICOM files, or a folder of pictures."""
    listing, patients = list_rsna(existing_folder(root, "rsna"))
    entries = tuple(_with_patient(entry, patients.get(entry.path, {})) for entry in listing.entries)
    return load_listing(
        replace(listing, entries=entries),
        partial(split_rsna, patients=patients, fold=fold, seed=seed),
        default_preprocessing(as_size(size, 224), 1),
        skip_unreadable=skip_unreadable,
        split_name=f"seed{seed}-fold{fold}",
    )


def list_rsna(root: Path) -> tuple[Listing, dict[str, Patient]]:
    """The listing, and what is known of the patient of each path (nothing, for most folders of pictures)."""
    check_rsna(root)
    if any((root / name).exists() for name in RSNA_OFFICIAL):
        listing = _list_official(root)
        patients, unknown = people(listing)
        listing = replace(listing, notes=(*listing.notes, *unknown))
    elif (root / "labels.csv").is_file():
        listing, patients = _list_labels(root)
    else:
        found = list_folder(root, "rsna")
        entries = tuple(Entry(e.path, _label(e.label, root), e.split) for e in found.entries)
        listing, patients = Listing("rsna", root, entries, CLASSES, found.notes), {}
    return _with_split_note(listing, patients), patients


def split_rsna(known: Sequence[Known], patients: Mapping[str, Patient], fold: Fold, seed: int) -> list[str]:
    """20% test, stratified by class and, where known, sex and age (in decades); five folds of the rest,
    stratified alike. Pictures of one patient, or copies of one picture, are never parted."""
    paths = [item.entry.path for item in known]
    strata = [(item.entry.label, *_stratum(patients.get(item.entry.path, {}))) for item in known]
    who = [str(patients.get(path, {}).get("id") or path) for path in paths]
    groups = connected(who, [item.sha256 for item in known])
    given = [item.entry.split for item in known]
    if "test" in given:
        split_of = [split or "train" for split in given]
    else:
        split_of = ["test" if share == 0 else "train" for share in deal(paths, strata, groups, 5, seed)]
    return with_fold(split_of, paths, strata, groups, fold=fold, seed=seed)


def _stratum(person: Patient) -> tuple[str, int]:
    age = person.get("age")
    return str(person.get("sex") or "?"), -1 if age is None else int(age) // 10


def _with_patient(entry: Entry, person: Patient) -> Entry:
    about = {key: str(person[key]) for key in ("sex", "age") if person.get(key) is not None}
    return replace(entry, group=str(person.get("id") or ""), about=about)


def _with_split_note(listing: Listing, patients: Mapping[str, Patient]) -> Listing:
    if any(person.get("age") is not None or person.get("sex") for person in patients.values()):
        return listing
    note = "No patient data came with these images: splits are stratified by class only."
    return replace(listing, notes=(*listing.notes, note))


def _label(text: str, where: Path) -> str:
    label = LABELS.get(text.strip().lower().replace("_", " "))
    if label is None:
        raise ProtoPFaithError(
            f"{where} has the class {text!r}; expected normal (or healthy) and lung_opacity (or pneumonia)."
        )
    return label


# --- the official files


def _list_official(root: Path) -> Listing:
    missing = [name for name in (IMAGES, BOXES, DETAILS) if not (root / name).exists()]
    if missing:
        raise ProtoPFaithError(f"{', '.join(missing)} missing in {root}; unpack {WHERE} there.")
    labels = _official_labels(root)
    wanted = {name: LABELS[label] for name, label in labels.items() if label != IGNORED}
    paths = {name: f"{IMAGES}/{name}.dcm" for name in labels}
    check_all_there(root, [paths[name] for name in wanted], DETAILS, WHERE)
    boxes = _official_boxes(root)
    entries = [Entry(paths[name], label, None, boxes.get(name, ())) for name, label in sorted(wanted.items())]
    notes = unlisted_note(root, root / IMAGES, paths.values(), {".dcm"})
    return Listing("rsna", root, tuple(entries), CLASSES, tuple(notes), official=True)


def _official_labels(root: Path) -> dict[str, str]:
    labels = {name: label.lower() for name, label in _columns(root / DETAILS, ("patientId", "class"))}
    unknown = sorted(set(labels.values()) - set(LABELS) - {IGNORED})
    if unknown:
        raise ProtoPFaithError(
            f"{root / DETAILS} has the class {unknown[0]!r}; expected Normal, Lung Opacity and No Lung "
            f"Opacity / Not Normal; unpack {WHERE} again."
        )
    return labels


def _official_boxes(root: Path) -> dict[str, tuple[Box, ...]]:
    found: dict[str, tuple[Box, ...]] = {}
    names = ("patientId", "Target", "x", "y", "width", "height")
    for name, target, *numbers in _columns(root / BOXES, names):
        if target == "1":
            x, y, width, height = (_number(number, root / BOXES) for number in numbers)
            found[name] = (*found.get(name, ()), (x, y, x + width, y + height))
    return found


def _columns(path: Path, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The values of these columns, row by row."""
    table = read_table(path, f"a table with the columns {', '.join(names)}")
    places = [table.needed((name,)) for name in names]
    return [tuple(row[place] for place in places) for row in table.rows]


def _number(text: str, where: Path) -> float:
    try:
        if math.isfinite(number := float(text)):
            return number
    except ValueError:
        pass
    raise ProtoPFaithError(f"{where} has {text[:40]!r} where a number belongs; unpack {WHERE} again.")


# --- a folder of pictures with labels.csv


def _list_labels(root: Path) -> tuple[Listing, dict[str, Patient]]:
    """Columns `file` and `label`; `patient`, `age` and `sex` are used when they are there."""
    from protopfaith.data.dicom import age_in_years

    table = read_table(root / "labels.csv", "a table with the columns file, label")
    file, label = table.needed(("file",)), table.needed(("label",))
    optional = {name: table.known((name,)) for name in ("patient", "age", "sex")}
    rows = [row for row in table.rows if row[label].lower().replace("_", " ") != IGNORED]
    paths = [row[file].replace("\\", "/") for row in rows]
    check_once(paths, "labels.csv")
    check_all_there(root, paths, "labels.csv", "or correct labels.csv")
    labels = [_label(row[label], table.path) for row in rows]
    entries = tuple(Entry(path, label) for path, label in sorted(zip(paths, labels, strict=True)))
    patients: dict[str, Patient] = {}
    for path, row in zip(paths, rows, strict=True):
        known = {name: "" if place is None else row[place] for name, place in optional.items()}
        patients[path] = {
            "id": known["patient"] or None,
            "age": age_in_years(known["age"]),
            "sex": known["sex"] or None,
        }
    notes = unlisted_note(root, root, [row[file].replace("\\", "/") for row in table.rows])
    return Listing("rsna", root, entries, CLASSES, tuple(notes)), patients
