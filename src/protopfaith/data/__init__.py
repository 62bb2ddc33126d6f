"""Images with labels: the embedded birds, image folders, the paper's data sets; splits and transforms.

Importing this package registers all data sets in its files.
"""

from protopfaith.data.birds import defining_parts
from protopfaith.data.external import External, Sample, load_external
from protopfaith.data.images import read_image
from protopfaith.data.imageset import ImageData, ImageSet, Record
from protopfaith.data.preparation import Preparation, prepare
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import DATASETS, load_data, options_of
from protopfaith.data.sheet import contact_sheet
from protopfaith.data.transforms import Augmentation, augment
from protopfaith.registry import import_modules

import_modules(__name__, __path__)

__all__ = [
    "DATASETS",
    "Augmentation",
    "External",
    "ImageData",
    "ImageSet",
    "Preparation",
    "Preprocessing",
    "Record",
    "Sample",
    "augment",
    "contact_sheet",
    "defining_parts",
    "load_data",
    "load_external",
    "options_of",
    "prepare",
    "read_image",
]
