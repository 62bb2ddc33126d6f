"""Images with labels: the embedded birds, image folders, the paper's data sets; splits and transforms.

Importing this package registers all data sets in its files.
"""

from protopfaith.data.birds import defining_parts, finding_part
from protopfaith.data.disk import load_listing, official_split
from protopfaith.data.external import External, Sample, load_external
from protopfaith.data.findings import as_finding
from protopfaith.data.imagedata import ImageData
from protopfaith.data.images import read_image
from protopfaith.data.imageset import ImageSet, Record
from protopfaith.data.listing import Entry, Listing
from protopfaith.data.preparation import Preparation, prepare
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import DATASETS, as_size, load_data, options_of
from protopfaith.data.sheet import contact_sheet
from protopfaith.data.transforms import Augmentation, augment
from protopfaith.files import existing_folder
from protopfaith.registry import import_modules

import_modules(__name__, __path__)

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
