"""What the words of a page mean, on the page itself."""

from __future__ import annotations

WORDS = {
    "prototype": (
        "Prototype",
        "A part of one training image that the network compares every new image with. Each class has a few; "
        "an image of a class should be close to some of them.",
    ),
    "source": ("Source image", "The training image that a prototype is a part of."),
    "distance": (
        "Distance and similarity",
        "How far the most similar part of this image is from a prototype, in the network's own features; "
        "zero on the prototype's source image. The smaller the distance, the more similar.",
    ),
    "score": (
        "Score",
        "What the network gives to every class before it makes probabilities of it, also called a logit.",
    ),
    "calibrated": (
        "Calibrated",
        "Probabilities are adjusted on images that the network was not trained on, so that of 100 decisions "
        "called 80% sure about 80 are right.",
    ),
    "player": (
        "Region (player)",
        "The image is divided into regions that are shown or hidden as a whole. In the game that "
        "Shapley values come from, they are the players.",
    ),
    "baseline": (
        "Baseline (empty image)",
        "What stands where a region is hidden. Every map says what changes from the empty image, where all "
        "regions are hidden, to this one.",
    ),
    "shapley": (
        "Shapley value",
        "What a region adds when it is shown, averaged over all orders in which regions can appear. "
        "The values of all regions add up to what the whole image changes.",
    ),
    "decided": (
        "Colored (decided), uncolored (undecided)",
        "Values are estimated by sampling. A region is colored where its value is so far from zero that "
        "chance hardly explains it: at most about one colored region in twenty is on the wrong side. "
        "Of all others it is not clear yet on which side they are.",
    ),
    "error": (
        "Known to about ±12% (relative error)",
        "How far the strengths behind the colors are from the true Shapley values: by about 12% of a typical "
        "region's strength. With the same regions, a larger budget makes that smaller.",
    ),
    "psi": (
        "Ψₖ (Psi)",
        "The paper's score of a prototype k: its weighted similarity, minus its share in the normalizer "
        "of the probabilities. It ranks the prototypes of one class.",
    ),
}

TREE_WORDS = {
    "node": (
        "Node",
        "A place in the tree with one prototype. The more similar the image is to it, the more probable is "
        "the way to the right (yes); otherwise it goes to the left (no).",
    ),
    "leaf": (
        "Leaf",
        "An end of the tree, with a probability for each class. The network adds up all leaves, weighted by "
        "how probable the ways to them are; shown is the way that is more probable at every node.",
    ),
}
"""Those that only trees need."""
