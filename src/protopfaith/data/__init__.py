"""Images with labels: the embedded birds, image folders, the paper's data sets; splits and transforms."""

from protopfaith.data import birds, folder
from protopfaith.data.birds import defining_parts
from protopfaith.data.images import read_image
from protopfaith.data.imageset import ImageData, ImageSet, Record
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.sources import DATASETS, load_data, options_of

__all__ = [
    "DATASETS",
    "ImageData",
    "ImageSet",
    "Preprocessing",
    "Record",
    "birds",
    "defining_parts",
    "folder",
    "load_data",
    "options_of",
    "read_image",
]
