"""Images with labels: the embedded birds, image folders, the paper's data sets; splits and transforms.

The names below are loaded when they are first used: a file that is no image, or a folder that is no data set,
is told without torch. `DATASETS` has all data sets in the files of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.files import existing_folder
from protopfaith.lazy import lazily

if TYPE_CHECKING:
    from protopfaith.data.birds import defining_parts, finding_part
    from protopfaith.data.disk import load_listing, official_split
    from protopfaith.data.external import External, Sample, load_external
    from protopfaith.data.findings import as_finding
    from protopfaith.data.imagedata import ImageData
    from protopfaith.data.images import read_image
    from protopfaith.data.imageset import ImageSet, Record
    from protopfaith.data.known import DATASETS
    from protopfaith.data.listing import Entry, Listing
    from protopfaith.data.preparation import Preparation, prepare
    from protopfaith.data.preprocessing import Preprocessing
    from protopfaith.data.registry import as_size, load_data, options_of
    from protopfaith.data.sheet import contact_sheet
    from protopfaith.data.transforms import Augmentation, augment

__all__ = [
    "DATASETS",
    "Augmentation",
    "Entry",
    "External",
    "ImageData",
    "ImageSet",
    "Listing",
    "Preparation",
    "Preprocessing",
    "Record",
    "Sample",
    "as_finding",
    "as_size",
    "augment",
    "contact_sheet",
    "defining_parts",
    "existing_folder",
    "finding_part",
    "load_data",
    "load_external",
    "load_listing",
    "official_split",
    "options_of",
    "prepare",
    "read_image",
]

_HOMES = {
    "Augmentation": "transforms",
    "DATASETS": "known",
    "Entry": "listing",
    "External": "external",
    "ImageData": "imagedata",
    "ImageSet": "imageset",
    "Listing": "listing",
    "Preparation": "preparation",
    "Preprocessing": "preprocessing",
    "Record": "imageset",
    "Sample": "external",
    "as_finding": "findings",
    "as_size": "registry",
    "augment": "transforms",
    "contact_sheet": "sheet",
    "defining_parts": "birds",
    "finding_part": "birds",
    "load_data": "registry",
    "load_external": "external",
    "load_listing": "disk",
    "official_split": "disk",
    "options_of": "registry",
    "prepare": "preparation",
    "read_image": "images",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
