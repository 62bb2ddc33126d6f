"""Images with labels: the embedded birds, image folders, the paper's data sets; splits and transforms.

Importing a data set's module registers it: a new one is a new file and one more name in the first import.
"""

from protopfaith.data import birds, cub, dogs, folder, rsna
from protopfaith.data.birds import defining_parts
from protopfaith.data.contact_sheet import contact_sheet
from protopfaith.data.images import read_image
from protopfaith.data.imageset import ImageData, ImageSet, Record
from protopfaith.data.prepare import Preparation, prepare
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.sources import DATASETS, load_data, options_of
from protopfaith.data.transforms import Augmentation, augment

__all__ = [
    "DATASETS",
    "Augmentation",
    "ImageData",
    "ImageSet",
    "Preparation",
    "Preprocessing",
    "Record",
    "augment",
    "birds",
    "contact_sheet",
    "cub",
    "defining_parts",
    "dogs",
    "folder",
    "load_data",
    "options_of",
    "prepare",
    "read_image",
    "rsna",
]
