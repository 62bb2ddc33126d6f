"""How much each cost of training counts, as a recipe says it. Without torch: a recipe is read at once."""

from __future__ import annotations

from dataclasses import dataclass, field

BOUNDS = {"at_least": -1e6, "at_most": 1e6}


@dataclass(frozen=True)
class CostWeights:
    """How much each cost counts; the defaults are the paper's."""

    cluster: float = field(default=0.5, metadata=BOUNDS)  # lambda_1
    separation: float = field(default=0.5, metadata=BOUNDS)  # lambda_2, subtracted
    # The authors' code divides cluster and separation by the number of prototypes P; the paper does not.
    # True follows the code: with P = 1,000 both costs then hardly count.
    per_prototype: bool = False
    # Against collapse: prototypes of one class repel each other (not in the paper).
    diversity: float = field(default=0.0, metadata=BOUNDS)
    # Against idle prototypes: the k-th prototypes of all classes must classify alone (not in the paper). A
    # prototype on the background is near every image, which costs nothing as long as others do the work.
    individual: float = field(default=0.0, metadata=BOUNDS)
    # Against prototypes of a class that all look at one part (not in the paper): each is near some place of
    # its own in every image of the class.
    places: float = field(default=0.0, metadata={"at_least": 0})
    # Against a spoiled encoder (not in the paper): V keeps its plain classifier, which goes on learning, and
    # the prototypes learn from its predictions as well as from the labels.
    companion: float = field(default=0.0, metadata={"at_least": 0})
    # Of copies with hidden regions (augmentation.hide.copies): what the network says of the whole image is
    # what it should say of the copy (not in the paper).
    hidden: float = field(default=1.0, metadata={"at_least": 0})
    # On F's weights to prototypes of other classes (Chen et al.: 1e-4; not in the paper).
    l1: float = field(default=0.0, metadata=BOUNDS)
    label_smoothing: float = field(default=0.0, metadata={"at_least": 0, "at_most": 1})
    # Classes count alike in every cross-entropy, however many images they have: what balanced accuracy
    # asks for (not in the paper). Of findings presence and absence do.
    balanced: bool = False
    # Of an XProtoNet (Kim et al.): how much of the image its occurrence maps fill, and how far they are from
    # moving with the image.
    occurrence: float = field(default=0.0, metadata=BOUNDS)
    consistency: float = field(default=0.0, metadata=BOUNDS)
