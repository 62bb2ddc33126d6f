"""What may happen to training images, as a recipe says it. Without torch: a recipe is read at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from protopfaith.annotations import check_fields
from protopfaith.arguments import finite_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.typed import section, setting

HiddenWith = Literal["zero", "blur", "color"]
SIDE = {"at_least": 1, "at_most": 4096}
Padding = Literal["zeros", "border", "reflection"]


@dataclass(frozen=True)
class Hiding:
    """Square regions of some training images that are hidden; the default hides nothing.

    Of a `share` of the images windows of a random side between `smallest` and `largest` pixels are hidden,
    each with the same probability, which is uniform between 0 and 1 for each image. `baseline` is what
    stands there: zero after normalization, the blurred image, or a random color. `stages` says whether
    the plain classifier, the prototypes (warm-up, joint and F where it is augmented) or all of them see such
    images. With `copies` these are copies beside the whole images, and what the network says of the whole
    image is what it should say of its copy (`costs.hidden`).

    >>> Hiding(share=0.5).smallest
    8
    """

    share: float = setting(0.0, "of the images; 0: none", at_least=0, at_most=1)
    smallest: int = setting(8, "side of a region in pixels", **SIDE)
    largest: int = setting(64, "side of a region in pixels", **SIDE)
    baseline: HiddenWith = setting("zero", "what stands there: zero (after normalization), blur or color")
    stages: Literal["all", "plain", "prototypes"] = setting(
        "all", "all, plain (the plain classifier) or prototypes"
    )
    copies: bool = setting(False, "hide them in copies beside the whole images, see costs.hidden")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.copies and not self.share:
            raise ProtoPFaithError(
                "augmentation.hide.copies asks for copies with hidden regions, but augmentation.hide.share=0 "
                "makes none; set the share, as in augmentation.hide.share=0.5, or copies to false."
            )


@dataclass(frozen=True)
class Augmentation:
    """What may happen to a training image; the default is nothing.

    Args:
        rotation: the largest angle, in degrees
        shear: the largest angle, in degrees
        translation: the largest shift, as a fraction of the image
        scale: the range of factors
        flip: the probability of a mirror image
        padding: what fills the corners: zeros, border or reflection
        color: brightness, contrast and saturation change by factors between 1 - color and 1 + color
        size: (height, width) of the images trained on; smaller ones are faster, and where `scale` enlarges
            what they show, it keeps the size at which objects appear; None: as they are
        hide: regions that are hidden last, after normalization, see `protopfaith.data.hiding`

    >>> Augmentation(rotation=15, flip=0.5).color
    0.0
    """

    rotation: float = setting(0.0, "largest angle in degrees", at_least=0, at_most=360)
    shear: float = setting(0.0, "largest angle in degrees", at_least=0, at_most=89)
    translation: float = setting(0.0, "largest shift, as a share of the image", at_least=0, at_most=1)
    scale: tuple[float, float] = setting((1.0, 1.0), "smallest and largest factor", above=0, at_most=100)
    flip: float = setting(0.0, "probability of a mirror image", at_least=0, at_most=1)
    padding: Padding = setting("zeros", "what fills the corners: zeros, border or reflection")
    color: float = setting(
        0.0, "brightness, contrast and saturation change by up to this share", at_least=0, at_most=1
    )
    size: tuple[int, int] | None = setting(
        None, "height and width of the images trained on; null: as they are", at_least=8, at_most=4096
    )
    hide: Hiding = section(
        Hiding, "regions that are hidden, so that the network knows what explanations show it"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        for entry in fields(self):
            value = getattr(self, entry.name)
            for number in value if isinstance(value, (tuple, list)) else (value,):
                if number is not None and entry.name not in ("padding", "hide"):
                    finite_number(number, f"The augmentation's {entry.name}")
        if self.scale[0] > self.scale[1]:
            raise ProtoPFaithError(
                "The augmentation's scale goes from the smaller to the larger factor, not "
                f"{list(self.scale)}."
            )
