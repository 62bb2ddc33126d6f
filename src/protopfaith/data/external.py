"""Images from elsewhere that a trained network is judged on: a data set, a folder of classes, or a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from protopfaith.annotations import check_arguments, check_fields
from protopfaith.arguments import instance, shown
from protopfaith.data.dicom import patient
from protopfaith.data.findings import EXPECTED as FINDINGS_EXPECTED
from protopfaith.data.findings import known_findings, loosely
from protopfaith.data.groups import named_groups, read_groups
from protopfaith.data.imagedata import ImageData
from protopfaith.data.images import is_dicom
from protopfaith.data.imageset import ImageSet
from protopfaith.data.known import DATASETS
from protopfaith.data.listing import READABLE, Entry, Listing, check_once, image_files, listed_name
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import load_data
from protopfaith.data.roots import external_folders
from protopfaith.data.table import FILES, GROUPS, read_table
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder, is_file, is_folder, sha256
from protopfaith.registry import nothing_named

LABEL_COLUMNS = ("label", "class")
EXPECTED = "a table with the columns file and label (also patient, sex, age, site, device where known)"


@dataclass(frozen=True)
class Sample:
    """One image from elsewhere, before it is read.

    Args:
        path: its name, below the folder that it lies in
        label: its class, as the data says it
        group: which images belong together, as those of one patient; empty where it stands alone
        about: what else is known: sex, age, site, device, ...
        findings: of images that may show several things at once, one number for each: 1 there, 0 not there,
            -1 not known

    >>> Sample("north/7.png", "healthy", "patient 3", {"site": "north"}).group
    'patient 3'
    """

    path: str
    label: str
    group: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class External:
    """Labeled images that are read one by one: a file that cannot be read does not spoil the others.

    Args:
        name: what to call them in results
        samples: the images
        pixels: of the image of a number: uint8, C x H x W at training size; raises where it cannot be read
        sha256: the fingerprint of its content
        notes: sentences about what was found, for people

    >>> def black(index):
    ...     return torch.zeros(3, 8, 8, dtype=torch.uint8)
    >>> len(External("night", (Sample("1.png", "cat"), Sample("2.png", "dog")), black, str))
    2
    """

    name: str
    samples: tuple[Sample, ...]
    pixels: Callable[[int], torch.Tensor]
    sha256: Callable[[int], str]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"External({self.name!r}, {len(self.samples):,} images)"

    def __len__(self) -> int:
        return len(self.samples)


def load_external(
    data: str,
    preprocessing: Preprocessing,
    *,
    root: Path | str | None = None,
    groups: Path | str | None = None,
    findings: Sequence[str] | None = None,
) -> External:
    """Images with labels to judge a network on that was trained on others.

    Args:
        data: the name of a data set, a folder with one folder per class, or a CSV file with the columns
            `file` and `label`, and `patient`, `sex`, `age`, `site`, `device` or any others where known
        preprocessing: how images are prepared for the network
        root: where a data set by name lies; for a CSV file the folder of its images, if not its own
        groups: for a folder of classes, a CSV file of image and group, or `names`: what file names such as
            patient12_3.png say
        findings: of a network that decides on several: then the data has those, and a CSV file one column for
            each with 1, 0 or nothing, instead of labels

    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> with TemporaryDirectory() as place:
    ...     for name in ("cat", "dog"):
    ...         (Path(place) / "clinic" / name).mkdir(parents=True)
    ...         Image.new("RGB", (8, 8)).save(Path(place) / "clinic" / name / "1.png")
    ...     load_external(f"{place}/clinic", Preprocessing((16, 16)))
    External('clinic', 2 images)
    """
    check_arguments(load_external, locals())
    instance(data, str, "External data", "a name, a folder or a CSV file")
    if not data.strip():
        raise ProtoPFaithError("External data has no name; give a data set, a folder or a CSV file.")
    place = None if root is None else Path(root).expanduser()
    path = Path(data).expanduser()
    is_folder_of_classes = data == "folder" or (data not in DATASETS and is_folder(path))
    if groups is not None and (findings is not None or not is_folder_of_classes):
        raise ProtoPFaithError(
            "Groups are given for a folder of images; a CSV file has them in a column named patient or group."
        )
    if is_folder_of_classes and findings is not None:
        raise ProtoPFaithError(
            "A folder of classes says one class of each image, but this network decides on several findings; "
            f"give {FINDINGS_EXPECTED}."
        )
    if is_folder_of_classes:
        folder = existing_folder(place if data == "folder" else path, "folder")
        return _from_folder(folder, preprocessing, groups)
    if data in DATASETS:
        return _from_name(data, place, preprocessing, findings)
    if is_file(path):
        return _from_table(path, place or path.parent, preprocessing, findings)
    raise nothing_named("data set, folder or CSV file", data, DATASETS)


# --- a data set by name


def _from_name(
    name: str, root: Path | None, preprocessing: Preprocessing, findings: Sequence[str] | None
) -> External:
    """All splits together: the network was trained on none of them, or what it has seen is left out later."""
    data = load_data(name, root=root, size=preprocessing.size, skip_unreadable=True)
    places = [(images, row) for images in data.sets().values() for row in range(len(images))]
    columns = _finding_columns(name, data, findings)

    def pixels(index: int) -> torch.Tensor:
        images, row = places[index]
        return preprocessing.uint8(images.image(row))

    def content(index: int) -> str:
        images, row = places[index]
        return images.sha256(row)

    def sample(images: ImageSet, row: int) -> Sample:
        record = images.records[row]
        label = images.classes[record.label] if findings is None else ""
        known = tuple(-1 if column is None else record.findings[column] for column in columns)
        return Sample(record.path, label, record.group, record.about, known)

    unreadable = [note for note in data.notes if "unreadable" in note]
    absent = [one for one, column in zip(findings or (), columns, strict=True) if column is None]
    samples = tuple(sample(images, row) for images, row in places)
    return External(name, samples, pixels, content, (*unreadable, *_about_absent(absent)))


def _finding_columns(name: str, data: ImageData, findings: Sequence[str] | None) -> list[int | None]:
    """Where the data set has each finding of the network, None for those that it lacks; nothing for a network
    that decides for one class. Raises if the data set is of the other kind, or has none of the findings."""
    if (findings is not None) != (data.outcome == "several"):
        raise ProtoPFaithError(
            "The images of this data set have several findings each, but the network decides for one class; "
            "give data with one class per image."
            if findings is None
            else f"The images of {name} have one class each, but this network decides on several findings; "
            f"give {FINDINGS_EXPECTED}."
        )
    if findings is None:
        return []
    known = [loosely(one) for one in data.classes]
    columns = [known.index(loosely(one)) if loosely(one) in known else None for one in findings]
    if all(column is None for column in columns):
        raise ProtoPFaithError(
            f"The network knows none of the findings of {name}, such as {shown(data.classes[0])}; it knows "
            f"{shown(findings[0])} and others."
        )
    return columns


# --- a folder of classes


def _from_folder(root: Path, preprocessing: Preprocessing, groups: Path | str | None) -> External:
    """`<class>/*.jpg`, or the same in train/, validation/ and test/, which are taken together."""
    folders = external_folders(root)
    entries = [
        Entry(file.relative_to(root).as_posix(), folder.name)
        for folder in folders
        for file in image_files(folder, READABLE)
    ]
    listing = Listing("external", root, tuple(entries), tuple(sorted({entry.label for entry in entries})))
    belongs, notes = _groups(listing, groups)
    samples = [Sample(entry.path, entry.label, belongs.get(entry.path, "")) for entry in entries]
    found = _from_files(root.resolve().name or "external", root, samples, preprocessing)
    return replace(found, notes=tuple(notes))


def _groups(listing: Listing, groups: Path | str | None) -> tuple[dict[str, str], list[str]]:
    if groups is None:
        return {}, []
    if str(groups) != "names":
        return read_groups(groups, listing)
    belongs, _ = named_groups(listing)
    count = len(set(belongs.values()))
    said = f"File names put the images into {count:,} groups." if count else "File names tell no groups."
    return belongs, [said]


# --- a table of files


def _from_table(
    path: Path, root: Path, preprocessing: Preprocessing, findings: Sequence[str] | None
) -> External:
    if not is_folder(root):
        raise ProtoPFaithError(f"There is no folder {root}; give the folder that holds the images.")
    table = read_table(path, EXPECTED if findings is None else FINDINGS_EXPECTED)
    file, group = table.needed(FILES), table.known(GROUPS)
    labels, absent = [""] * len(table.rows), list[str]()
    known: list[tuple[int, ...]] = [()] * len(table.rows)
    if findings is None:
        columns = [table.needed(LABEL_COLUMNS)]
        labels = [row[columns[0]] for row in table.rows]
    else:
        known, columns, absent = known_findings(table, findings)
    samples = [
        Sample(
            listed_name(row[file], str(path), root),
            label,
            "" if group is None else row[group],
            table.about(row, (file, group, *columns)),
            values,
        )
        for row, label, values in zip(table.rows, labels, known, strict=True)
    ]
    check_once((sample.path for sample in samples), str(path))
    found = _from_files(path.stem, root, samples, preprocessing)
    return replace(found, notes=tuple(_about_absent(absent)))


def _about_absent(names: Sequence[str]) -> list[str]:
    return [f"Nothing is known of {', '.join(names)} in these images."] if names else []


# --- files, one by one


def _from_files(name: str, root: Path, samples: Sequence[Sample], preprocessing: Preprocessing) -> External:
    complete = tuple(_with_header(root, sample) for sample in samples)

    def pixels(index: int) -> torch.Tensor:
        return preprocessing.uint8(preprocessing.read(root / complete[index].path))

    def content(index: int) -> str:
        path = root / complete[index].path
        try:
            return sha256(path) if is_file(path) else ""
        except OSError:  # said where its pixels are read
            return ""

    return External(name, complete, pixels, content)


def _with_header(root: Path, sample: Sample) -> Sample:
    """Patient, sex and age from the header of a DICOM file, where the data does not say them itself."""
    if not is_dicom(root / sample.path):
        return sample
    try:
        person = patient(root / sample.path)
    except ProtoPFaithError:  # said where its pixels are read
        return sample
    known = {key: str(person[key]) for key in ("sex", "age") if person[key] is not None}
    return replace(sample, group=sample.group or person["id"] or "", about={**known, **sample.about})
