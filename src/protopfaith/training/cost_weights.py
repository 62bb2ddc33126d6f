"""How much each cost of training counts, as a recipe says it. Without torch: a recipe is read at once."""

from __future__ import annotations

from dataclasses import dataclass

from protopfaith.typed import setting

BOUNDS = {"at_least": -1e6, "at_most": 1e6}


@dataclass(frozen=True)
class CostWeights:
    """How much each cost counts. The defaults are the paper's: what it has not is off."""

    cluster: float = setting(0.5, "lambda 1: every image near some prototype of its class", **BOUNDS)
    # Subtracted.
    separation: float = setting(0.5, "lambda 2: every image far from prototypes of other classes", **BOUNDS)
    # The paper does not divide. With P = 1,000 prototypes both costs hardly count if they are divided.
    per_prototype: bool = setting(False, "divide both by the number of prototypes, as the authors' code does")
    diversity: float = setting(0.0, "prototypes of one class repel each other", **BOUNDS)
    # The k-th prototypes of all classes must classify alone. A prototype on the background is near every
    # image, which costs nothing as long as others do the work.
    individual: float = setting(0.0, "prototypes must classify alone, against idle ones", **BOUNDS)
    places: float = setting(
        0.0,
        "prototypes of a class at different places of an image, against five on one part",
        at_least=0,
    )
    # Against a spoiled encoder: the plain classifier goes on learning beside the prototypes.
    companion: float = setting(
        0.0, "V keeps its plain classifier, which the prototypes learn from, too", at_least=0
    )
    hidden: float = setting(
        1.0,
        "of copies with hidden regions, of which it should say what it says of whole images",
        at_least=0,
    )
    l1: float = setting(0.0, "on F's weights to prototypes of other classes", **BOUNDS)  # Chen et al.: 1e-4
    label_smoothing: float = setting(0.0, "of the cross-entropy", at_least=0, at_most=1)
    # In every cross-entropy: what balanced accuracy asks for.
    balanced: bool = setting(
        False, "all classes count alike, however many images they have; of findings both answers"
    )
    occurrence: float = setting(
        0.0, "of an XProtoNet: how much of the image its occurrence maps fill", **BOUNDS
    )
    consistency: float = setting(0.0, "of an XProtoNet: occurrence maps move with the image", **BOUNDS)
