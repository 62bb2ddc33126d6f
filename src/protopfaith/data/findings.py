"""Images that may show several findings at once: a table says which, images lie in a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, shown
from protopfaith.data.disk import Known, load_listing
from protopfaith.data.folder import default_preprocessing
from protopfaith.data.groups import parted, patients
from protopfaith.data.imagedata import ImageData
from protopfaith.data.listing import Entry, Listing, check_all_there, check_once, listed_name
from protopfaith.data.registry import DATASETS, Fold, Size, as_size
from protopfaith.data.scaling import Scaling
from protopfaith.data.split_names import split_named
from protopfaith.data.splits import complete_splits, connected, deal_findings
from protopfaith.data.table import FILES, GROUPS, Table, read_table
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder, is_file
from protopfaith.registry import did_you_mean

EXPECTED = "a CSV file with a column of image files and one column per finding (1, 0, empty: not known)"
LISTS = ("findings", "labels", "finding labels")
VALUES = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0,
          "": -1, "-1": -1, "-1.0": -1, "nan": -1, "na": -1, "n/a": -1}  # fmt: skip
NOTHING = ("no finding", "none", "normal")
"""In a list of labels: nothing is there."""
MEANT = 0.9
"""Share of a column's values that are 1, 0 or missing, from which it is taken for a finding."""
MOST_FINDINGS = 1_000
ABOUT = frozenset({
    "sex", "gender", "male", "female", "man", "woman", "age", "age group", "race", "ethnicity", "site",
    "hospital", "device", "scanner", "manufacturer", "view", "view position", "projection", "fold",
    "no finding",
})  # fmt: skip
"""Columns that say whom an image shows or how it was taken, also where they are written as 1 and 0;
and the one of those in whom nothing was found."""


@DATASETS.register("findings")
def load_findings(
    *,
    root: Path | None,
    size: Size,
    seed: int,
    fold: Fold,
    skip_unreadable: bool,
    table: str = "labels.csv",
    findings: Sequence[str] | None = None,
    labels: str | None = None,
    separator: str | None = None,
    patient: str | None = None,
    channels: int = 3,
    bits: int | str | None = None,
    window: Sequence[float] | None = None,
) -> ImageData:
    """Your own images with several findings each: a CSV file with one column per finding, or a list of them.

    `table` lies in the root, or anywhere. `findings` names the columns, by default all that hold 1, 0 or
    nothing, but for those that say sex, age, site and the like; `labels` names a column of lists instead,
    with `separator` between the labels, by default "|" or what the lists themselves show. `patient` is the
    column of patients, whose images stay in one split.
    """
    place = existing_folder(root, "findings")
    scaling = Scaling(bits, None if window is None else (window[0], window[1]))
    listing = list_findings(
        place, table, findings=findings, labels=labels, separator=separator, patient=patient
    )
    return load_listing(
        replace(listing, name=f"findings{scaling.name}", read=scaling.read),
        partial(split_findings, fold=fold, seed=seed),
        replace(
            default_preprocessing(as_size(size, 224), channels), bits=scaling.bits, window=scaling.window
        ),
        skip_unreadable=skip_unreadable,
        split_name=f"seed{seed}-fold{fold}",
    )


def list_findings(
    root: Path,
    table: str = "labels.csv",
    *,
    findings: Sequence[str] | None = None,
    labels: str | None = None,
    separator: str | None = None,
    patient: str | None = None,
) -> Listing:
    """Every image of the table with what is known of its findings."""
    instance(table, str, "The table of findings", "the path of a CSV file")
    for name, given in (("labels", labels), ("patient", patient)):
        if given is not None:
            instance(given, str, f"The column of {name}", "a name")
    if findings is not None and labels is not None:
        raise ProtoPFaithError(
            "Findings are columns of their own (findings=) or in one column of lists (labels=); give one."
        )
    found = read_table(_path_of(root, table), EXPECTED)
    file = found.needed(FILES)
    group = found.known(GROUPS) if patient is None else found.column(patient)
    split = found.known(("split",))
    taken = [place for place in (file, group, split) if place is not None]
    lists = found.known(LISTS) if labels is None and findings is None else None
    if labels is not None:
        lists = found.column(labels)
    notes: list[str] = []
    if lists is not None:
        names, values, notes = _from_lists(found, lists, separator)
        taken.append(lists)
    else:
        columns, notes = _finding_columns(found, findings, taken)
        names, values = _from_columns(found, columns)
        taken += columns
    entries = [
        Entry(
            listed_name(row[file], str(found.path), root),
            "",
            None if split is None else _split_of(row[split], found.path),
            group="" if group is None else row[group],
            about=found.about(row, taken),
            findings=known,
        )
        for row, known in zip(found.rows, values, strict=True)
    ]
    return _listing(root, found.path, names, entries, notes)


def _path_of(root: Path, table: str) -> Path:
    path = root / table if is_file(root / table) else Path(table).expanduser()
    if not is_file(path):
        raise ProtoPFaithError(
            f"There is no table {path} in the folder {root}, or elsewhere; put labels.csv there, or name the "
            "table with data.options.table=PATH."
        )
    return path


def _listing(
    root: Path, path: Path, names: tuple[str, ...], entries: list[Entry], notes: list[str]
) -> Listing:
    check_once((entry.path for entry in entries), str(path))
    check_all_there(root, [entry.path for entry in entries], str(path), "or correct the table")
    labeled = [entry for entry in entries if max(entry.findings) >= 0]
    if not labeled:
        raise ProtoPFaithError(
            f"No image in {path} has a known label; write 1 or 0 where a finding is known."
        )
    if len(labeled) < len(entries):
        notes.append(f"{len(entries) - len(labeled)} images in {path.name} have no known label: left out.")
    listing = Listing("findings", root, tuple(labeled), names, outcome="several")
    if not any(entry.group for entry in labeled):
        belongs, unknown = patients(listing)
        notes += unknown
        labeled = [replace(entry, group=belongs.get(entry.path, "")) for entry in labeled]
    given = [entry for entry in labeled if entry.split]
    notes += parted([entry.group or entry.path for entry in given], [entry.split or "" for entry in given])
    return replace(listing, entries=tuple(labeled), notes=tuple(notes))


def split_findings(known: Sequence[Known], *, fold: Fold, seed: int) -> list[str]:
    """Keeps the splits that are there. Without a test set one image in five is held out, without a validation
    set it is a fold of the rest, both with every finding spread evenly; patients are never parted. A finding
    that is there in few images is there in training."""
    paths = [item.entry.path for item in known]
    findings = [item.entry.findings for item in known]
    groups = connected(
        [item.sha256 for item in known], [item.entry.group or f"{item.entry.path} alone" for item in known]
    )
    given = [item.entry.split for item in known]
    shown = [tuple((place, value) for place, value in enumerate(row) if value >= 0) for row in findings]
    return complete_splits(given, paths, findings, groups, shown, fold=fold, seed=seed, dealer=deal_findings)


def _finding_columns(
    table: Table, findings: Sequence[str] | None, taken: Sequence[int]
) -> tuple[list[int], list[str]]:
    """The columns of findings, and sentences about those that look like some but are none."""
    if findings is not None:
        return _named_columns(table, findings), []
    columns, notes = [], []
    for place, name in enumerate(table.header):
        if place in taken:
            continue
        if not name:
            if _why_not(table, place) is None:
                notes.append(f"Column {place + 1} of {table.path.name} has no name and is left out.")
            continue
        column, why = f"The column {name!r} of {table.path.name}", _why_not(table, place)
        if why is None:
            columns.append(place)
        elif not any(row[place] for row in table.rows):
            notes.append(f"{column} is empty and left out.")
        elif why:
            notes.append(f"{column} {why}; data.options.findings=[...] names the findings.")
    if not columns:
        raise ProtoPFaithError(
            f"{table.path} has no column of findings, with 1, 0 or nothing in it; give {EXPECTED}, or name "
            "the columns with data.options.findings=[...]."
        )
    if len(columns) > MOST_FINDINGS:
        raise ProtoPFaithError(
            f"{table.path} has {len(columns):,} columns of 1 and 0, more than {MOST_FINDINGS:,} findings; "
            "name those that are meant with data.options.findings=[...]."
        )
    _check_told_apart([table.header[place] for place in columns], table.path)
    return columns, notes


def _named_columns(table: Table, findings: Sequence[str]) -> list[int]:
    if not isinstance(findings, (list, tuple)) or not all(isinstance(name, str) for name in findings):
        raise ProtoPFaithError(f"Findings are a list of column names, not {shown(findings)}.")
    if not findings or len(set(findings)) < len(findings):
        raise ProtoPFaithError(f"Name at least one finding, each once, not {shown(list(findings))}.")
    return [table.column(name) for name in findings]


def _why_not(table: Table, place: int) -> str | None:
    """Why a column is no finding: nothing to say where it does not look like one; None where it is one."""
    given = [row[place] for row in table.rows if row[place]]
    others = [value for value in given if value.lower() not in VALUES]
    meant = len(given) - len(others)
    if not given or meant < len(given) / 2:
        return ""
    if meant < MEANT * len(given):
        return f"holds {shown(others[0])} and is not taken for a finding"
    if _is_about(table.header[place]):
        return "says something about the image and is not taken for a finding, only for subgroups"
    return None


def _is_about(name: str) -> bool:
    """Whether a column's name is that of a property of the patient or of the image, such as `is_male`."""
    return re.sub(r"^(is|patient'?s?) ", "", loosely(name)) in ABOUT


def _from_columns(table: Table, columns: Sequence[int]) -> tuple[tuple[str, ...], list[tuple[int, ...]]]:
    values = []
    for number, row in zip(table.numbers, table.rows, strict=True):
        wrong = next((place for place in columns if row[place].lower() not in VALUES), None)
        if wrong is not None:
            raise ProtoPFaithError(
                f"Row {number} of {table.path} has {shown(row[wrong])} for {table.header[wrong]!r}; write 1, "
                "0, or nothing where it is not known."
            )
        values.append(tuple(VALUES[row[place].lower()] for place in columns))
    return tuple(table.header[place] for place in columns), values


def known_findings(table: Table, names: Sequence[str]) -> tuple[list[tuple[int, ...]], list[int], list[str]]:
    """What a table says of findings that are given: 1, 0 or -1 (not known) of each, in each row.

    Columns are found whatever their case, spaces and underscores. Where there are none of these, a column of
    lists says it.

    Args:
        table: with one column per finding, or a column of lists
        names: the findings

    Returns:
        The values of each row, the columns that say them, and the findings that the table says nothing about.
    """
    headings = [loosely(heading) for heading in table.header]
    meant = {loosely(name) for name in names}
    _check_told_apart([heading for heading in table.header if loosely(heading) in meant], table.path)
    places = {name: headings.index(loosely(name)) for name in names if loosely(name) in headings}
    if places:
        _, values = _from_columns(table, list(places.values()))
        rows = [dict(zip(places, row, strict=True)) for row in values]
        columns = list(places.values())
    else:
        column = table.known(LISTS)
        if column is None:
            raise ProtoPFaithError(
                f"{table.path} has no column for any finding of the network, such as {shown(names[0])}; give "
                f"{EXPECTED}."
            )
        listed, values, _ = _from_lists(table, column, names=names)
        rows = [dict(zip(map(loosely, listed), row, strict=True)) for row in values]
        rows = [{name: row[loosely(name)] for name in names if loosely(name) in row} for row in rows]
        columns = [column]
    found = [tuple(row.get(name, -1) for name in names) for row in rows]
    return found, columns, [name for name in names if all(name not in row for row in rows)]


def loosely(name: str) -> str:
    """A name whatever its case, spaces and underscores.

    >>> loosely("Lung_Opacity") == loosely("lung opacity")
    True
    """
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _from_lists(
    table: Table, column: int, separator: str | None = None, *, names: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[tuple[int, ...]], list[str]]:
    """Findings are all labels that occur; a label that an image does not list is not there. An empty list
    says nothing, and the image is left out. Also a sentence about lists that contradict themselves. `names`
    are findings that may be there, where they are known."""
    texts = [row[column].strip() for row in table.rows]
    cells = [_without_brackets(text) for text in texts]
    if separator is None:
        as_python = any(text.startswith("[") for text in texts)
        separator = "," if as_python else _usual_separator(cells, names)
    if not isinstance(separator, str) or not separator:
        raise ProtoPFaithError(f"The separator of labels is a text such as '|', not {shown(separator)}.")
    lists = [[label.strip(" '\"") for label in cell.split(separator)] for cell in cells]
    names = sorted({label for row in lists for label in row if label and label.lower() not in NOTHING})
    if not 1 <= len(names) <= MOST_FINDINGS:
        raise ProtoPFaithError(
            f"The column {table.header[column]!r} of {table.path} lists {len(names)} different labels; "
            f"expected 1 to {MOST_FINDINGS}, with {separator!r} between them."
        )
    _check_told_apart(names, table.path)
    values = [tuple(int(name in row) for name in names) if any(row) else (-1,) * len(names) for row in lists]
    both = [
        number
        for number, row, known in zip(table.numbers, lists, values, strict=True)
        if max(known) > 0 and any(label.lower() in NOTHING for label in row)
    ]
    notes = []
    if both:
        rows = f"Row {both[0]}" if len(both) == 1 else f"{len(both)} rows, such as row {both[0]},"
        notes = [f"{rows} of {table.path.name} says that nothing was found, and what; the latter counts."]
    return tuple(names), values, notes


def _check_told_apart(names: Sequence[str], path: Path) -> None:
    """Raises if two findings have the same name but for case, spaces and underscores: one is a slip of the
    pen, and nothing would say which of them another table means."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(loosely(name), name)
        if other != name:
            raise ProtoPFaithError(
                f"{path} has findings that are called {other!r} and {name!r}; write them alike if they are "
                "the same, or give one of them another name."
            )


def _without_brackets(cell: str) -> str:
    """A list as Python writes it, without its brackets; an empty one says that nothing is there."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return cell
    return cell[1:-1].strip() or NOTHING[0]


def _usual_separator(cells: Sequence[str], names: Sequence[str] = ()) -> str:
    """What stands between labels: what separates the most of those `names` that are known, "|", or else what
    leaves fewer different labels than there are cells, as in "a", "b" and "a, b". A name such as
    "pneumonia, viral" stays one.

    >>> _usual_separator(["edema", "mass", "edema, mass"]), _usual_separator(["pneumonia, viral", "normal"])
    (',', '|')
    >>> _usual_separator(["edema, mass", "normal"], ["mass"])
    ','
    """
    whole = set(cells)
    labels = {mark: {label.strip() for cell in whole for label in cell.split(mark)} for mark in "|;,"}
    known = {loosely(name) for name in names}
    hits = {mark: len(known & set(map(loosely, found))) for mark, found in labels.items()}
    if max(hits.values()) > hits["|"]:
        return max(hits, key=lambda mark: hits[mark])
    if any("|" in cell for cell in whole):
        return "|"
    if any(";" in cell for cell in whole) and len(labels[";"]) <= len(whole):  # no part of a name
        return ";"
    return "," if len(labels[","]) < len(whole) else "|"


def _split_of(text: str, path: Path) -> str:
    split = split_named(text)
    if split is None:
        raise ProtoPFaithError(
            f"{path} has {shown(text)} in its column 'split'; write train, validation or test."
        )
    return split


def as_finding(data: ImageData, positive: str) -> ImageData:
    """Images of two classes as images with one finding: the class `positive` is there or not.

    Args:
        data: images of two classes
        positive: the name of one of them

    >>> from protopfaith.data import load_data
    >>> birds = load_data("birds", size=16, train=16, validation=8, test=8)
    >>> as_finding(birds, "Great Tukka").train
    ImageSet(16 images with 1 finding, 3x16x16)
    """
    check_arguments(as_finding, locals())
    if positive not in data.classes:
        raise ProtoPFaithError(f"There is no class {shown(positive)}; {did_you_mean(positive, data.classes)}")
    place = data.classes.index(positive)
    sets = {name: images.with_findings([(int(r.label == place),) for r in images.records], (positive,))
            for name, images in data.sets().items()}  # fmt: skip
    return replace(
        data,
        train=sets["train"],
        validation=sets["validation"],
        test=sets["test"],
        classes=(positive,),
    )
