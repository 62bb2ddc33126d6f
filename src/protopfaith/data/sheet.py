"""Many images of a set in one picture, to see what a network will see."""

from __future__ import annotations

import torch
from PIL import Image, ImageDraw

from protopfaith.annotations import check_arguments
from protopfaith.arguments import seed_number, whole_number
from protopfaith.data.imageset import ImageSet
from protopfaith.limits import check_pixels

MOST = 10_000


def contact_sheet(
    images: ImageSet,
    rows: int = 8,
    columns: int = 8,
    *,
    tile: int = 112,
    boxes: bool = False,
    seed: int | None = None,
) -> Image.Image:
    """A sheet with one class (or finding) per row, as many classes as rows allow, each named; `boxes` draws
    the annotation.

    `seed` picks classes and images at random; None takes the first of each.

    Args:
        images: any set
        rows: classes at most
        columns: images of a class at most
        tile: side of an image on the sheet, in pixels
        boxes: draw boxes and part locations where they are known
        seed: picks classes and images at random; None takes the first of each

    >>> from protopfaith.data import load_data
    >>> birds = load_data("birds", size=16, train=8, validation=8, test=8)
    >>> contact_sheet(birds.train, rows=2, columns=3, tile=20).size
    (60, 72)
    """
    check_arguments(contact_sheet, locals())
    for name, number in (("rows", rows), ("columns", columns), ("pixels of a tile", tile)):
        whole_number(number, f"The number of {name}", least=1, most=MOST)
    check_pixels(columns * tile, rows * (tile + 16), "The contact sheet")
    order = list(range(len(images)))
    if seed is not None:
        seed_number(seed)
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed)).tolist()
    by_class: dict[int, list[int]] = {}
    for index in order:
        for label in images.shows(index):
            by_class.setdefault(label, []).append(index)
    chosen = sorted(list(by_class)[:rows])
    label_height = 16
    sheet = Image.new("RGB", (columns * tile, max(len(chosen), 1) * (tile + label_height)), "white")
    for row, label in enumerate(chosen):
        top = row * (tile + label_height)
        ImageDraw.Draw(sheet).text((4, top + 2), images.classes[label], fill="black")
        for column, index in enumerate(by_class[label][:columns]):
            sheet.paste(_tile(images, index, tile, boxes), (column * tile, top + label_height))
    return sheet


def _tile(images: ImageSet, index: int, side: int, boxes: bool) -> Image.Image:
    pixels = images.image(index)
    height, width = pixels.shape[-2:]
    rgb = pixels.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()
    picture = Image.fromarray(rgb).resize((side, side), Image.Resampling.LANCZOS)
    if boxes:
        draw = ImageDraw.Draw(picture)
        for left, top, right, bottom in images.boxes(index).tolist():
            corners = (left * side / width, top * side / height, right * side / width, bottom * side / height)
            draw.rectangle(corners, outline=(255, 200, 0))
        for x, y in images.points(index).values():
            x, y = x * side / width, y * side / height
            draw.ellipse((x - 2, y - 2, x + 2, y + 2), fill=(255, 60, 60))
    return picture
