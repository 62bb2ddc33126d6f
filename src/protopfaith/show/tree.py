"""The way of an image through a tree, as a page shows it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.network import Route
from protopfaith.show.bars import Bars, Sum, Term, share_bars, sum_bars
from protopfaith.show.pictures import DrawnPicture, Meaning, Pictures
from protopfaith.show.wording.numbers import percent

MOST_LEAVES = 64  # that fit into one drawing; of larger trees what lies off the way is drawn as one
MOST_NAMED = 3  # classes of such a part
MOST_CLASSES = 4  # of a leaf
WIDEST = 4  # steps to the left or right that a page has room for
SIMILAR = Meaning(
    "in similarity", "It makes the image more like the prototype.", "It makes the image less like it."
)


class SourcePatch(Protocol):
    """A prototype's place on its source image."""

    @property
    def pixels(self) -> Tensor: ...

    @property
    def box(self) -> tuple[int, int, int, int]: ...


Patches = Callable[[int], SourcePatch | None]


@dataclass(frozen=True)
class Step:
    """One node on the way."""

    question: str
    answer: str
    yes: bool
    yes_text: str
    no_text: str
    place: int  # columns from the left, for wide pages
    pictures: tuple[tuple[DrawnPicture, str], ...]


@dataclass(frozen=True)
class Dot:
    """A node, a leaf, or a part of the tree that is drawn as one."""

    x: float
    y: float
    text: str
    taken: bool
    leaf: bool
    leaves: int = 1  # of such a part


@dataclass(frozen=True)
class Line:
    """A branch of the drawing."""

    x1: float
    y1: float
    x2: float
    y2: float
    taken: bool


@dataclass(frozen=True)
class Drawing:
    """The whole tree, with the way that the image takes."""

    width: float
    height: float
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    alt: str

    @property
    def leaves(self) -> int:
        """Of the whole tree."""
        return sum(dot.leaves for dot in self.dots if dot.leaf)

    @property
    def parts(self) -> bool:
        """Whether some of the tree is drawn as one."""
        return any(dot.leaves > 1 for dot in self.dots)


@dataclass(frozen=True)
class TreeView:
    """What the page says about the tree."""

    drawing: Drawing | None
    steps: tuple[Step, ...]
    leaf: Bars
    leaf_place: int
    sums: list[Bars]
    sentence: str


def tree_view(
    explanation: Explanation, scale: float, pictures: Pictures, patches: Patches | None = None
) -> TreeView | None:
    """The way through the tree; None where the network is none.

    Args:
        explanation: of one image
        scale: of the maps of prototypes
        pictures: those of the page
        patches: a prototype's source image and its part there, where the explanation has none
    """
    route = explanation.route
    if route is None:
        return None
    places = _places(route)
    evidence = {one.prototype: one for one in explanation.evidence}
    steps = tuple(
        _step(
            explanation,
            evidence[turn.prototype],
            number,
            places[number],
            scale=scale,
            pictures=pictures,
            patches=patches,
        )
        for number, turn in enumerate(route.turns)
    )
    return TreeView(
        draw_tree(route, explanation.class_names),
        steps,
        _leaf(explanation, route),
        places[-1],
        way_sum(route),
        share_of_leaf(explanation, route),
    )


def _step(
    explanation: Explanation,
    one: PrototypeEvidence,
    number: int,
    place: int,
    *,
    scale: float,
    pictures: Pictures,
    patches: Patches | None,
) -> Step:
    assert explanation.route is not None
    turn, name = explanation.route.turns[number], f"Prototype {one.prototype}"
    yes = turn.probability if turn.right else 1 - turn.probability
    here = pictures.boxed(explanation.pixels, f"{name}: the part of this image most like it", one.box)
    shown = [(here, "on this image")]
    side = one.on_source or (None if patches is None else patches(one.prototype))
    if side is not None:
        exact = one.source is None or one.source.exact
        there = pictures.boxed(side.pixels, f"{name}: on its source image", side.box)
        shown.append((there, "the prototype" if exact else "nearest to the prototype"))
    ours = pictures.ours(explanation.pixels, one.test, scale, f"{name}: what makes it similar", SIMILAR)
    return Step(
        f"{number + 1}. Something like prototype {one.prototype}?",
        f"{'Yes' if turn.right else 'No'}, {percent(turn.probability)}",
        turn.right,
        percent(yes),
        percent(1 - yes),
        place,
        (*shown, (ours, "what makes it similar")),
    )


def _places(route: Route) -> list[int]:
    """Where steps stand: each to the right of the one before after a yes, to the left after a no, as far as
    there is room."""
    found = [0]
    for turn in route.turns:
        found.append(found[-1] + (1 if turn.right else -1))
    middle = (max(found) + min(found)) / 2
    return [min(max(math.floor(place - middle + WIDEST / 2), 0), WIDEST) for place in found]


def _leaf(explanation: Explanation, route: Route) -> Bars:
    """The most probable classes in the leaf."""
    p = route.leaf_probabilities
    ranked = p.argsort(descending=True).tolist()[:MOST_CLASSES]
    rows = [(explanation.class_names[c], float(p[c]), percent(float(p[c]))) for c in ranked]
    return share_bars(f"Leaf {route.leaf}, reached with {percent(route.probability)}", rows)


def way_sum(route: Route) -> list[Bars]:
    """How much each node decides: log probabilities of the turns, which add up to that of the leaf."""
    terms = [
        Term(f"prototype {turn.prototype}: {'yes' if turn.right else 'no'}", turn.log_probability)
        for turn in route.turns
    ]
    total = Term(f"log P(leaf {route.leaf})", route.log_probability)
    return sum_bars(Sum("The log probability of this way, turn by turn", terms, total))


def share_of_leaf(explanation: Explanation, route: Route) -> str:
    """What this leaf has to do with the class that is explained: the tree adds all leaves up."""
    target = explanation.target
    name = explanation.class_names[target]
    # What probabilities were before they were calibrated.
    p = (explanation.probabilities.double().log() * (explanation.temperature or 1.0)).softmax(0)
    share = min(
        1.0, route.probability * float(route.leaf_probabilities[target]) / max(float(p[target]), 1e-300)
    )
    when = " before calibration" if explanation.temperature is not None else ""
    return (
        "The tree weighs all its leaves by how probable the ways to them are: "
        f"{percent(float(p[target]))} for {name}{when}, of which {percent(share)} come from this leaf."
    )


def draw_tree(route: Route, class_names: Sequence[str]) -> Drawing | None:
    """The whole tree, or of a large one the way and what branches off it; None where it is not known.

    Args:
        route: of one image
        class_names: of the network
    """
    if not route.children:
        return None
    large = len(route.children) >= MOST_LEAVES
    sides = {turn.prototype: turn.right for turn in route.turns}
    lines: list[Line] = []
    dots: list[Dot] = []
    sides_taken = _taken_nodes(route)
    columns = len(sides_taken) + 1 if large else len(route.children) + 1
    step = max(100 / columns, 1.0)
    next_column = iter(range(columns))

    def settle(place: int, depth: int, taken: bool) -> tuple[float, float]:
        """Draws what is below; gives where the place itself is."""
        y = 6.0 + 11.0 * depth
        if place < 0:
            x = step * (next(next_column) + 0.5)
            label = class_names[route.leaf_classes[-1 - place]] if route.leaf_classes else ""
            dots.append(Dot(round(x, 2), y, f"leaf {-1 - place}: {label}", taken, leaf=True))
            return x, y
        if large and place not in sides_taken:
            x = step * (next(next_column) + 0.5)
            below = _leaves_below(route, place)
            dots.append(Dot(round(x, 2), y, _named(route, below, class_names), False, True, len(below)))
            return x, y
        right = sides.get(place)
        ends = [
            settle(child, depth + 1, taken and right is not None and right == side)
            for side, child in zip((False, True), route.children[place], strict=True)
        ]
        x = sum(one for one, _ in ends) / 2
        for side, (there, down) in zip((False, True), ends, strict=True):
            on_way = taken and right is not None and right == side
            lines.append(Line(round(x, 2), y, round(there, 2), down, on_way))
        dots.append(Dot(round(x, 2), y, f"prototype {place}", taken, leaf=False))
        return x, y

    settle(0, 0, taken=True)
    height = max(dot.y + (4 if dot.leaves > 1 else 0) for dot in dots) + 6
    lines.sort(key=lambda line: line.taken)  # the way lies above the rest
    words = ", ".join(f"prototype {t.prototype} {'yes' if t.right else 'no'}" for t in route.turns)
    return Drawing(
        round(step * columns, 2), height, tuple(lines), tuple(dots), f"The tree, and the way: {words}"
    )


def _taken_nodes(route: Route) -> set[int]:
    """The nodes on the way, from the root to the leaf, also those that pass every image on."""
    above = {child: node for node, pair in enumerate(route.children) for child in pair}
    place, found = -1 - route.leaf, set()
    while place in above:
        place = above[place]
        found.add(place)
    return found


def _leaves_below(route: Route, place: int) -> list[int]:
    if place < 0:
        return [-1 - place]
    return [leaf for child in route.children[place] for leaf in _leaves_below(route, child)]


def _named(route: Route, leaves: Sequence[int], class_names: Sequence[str]) -> str:
    """How many leaves, and the classes that most of them are for."""
    counted = Counter(route.leaf_classes[leaf] for leaf in leaves) if route.leaf_classes else Counter()
    some = [class_names[label] for label, _ in counted.most_common(MOST_NAMED)]
    others = len(counted) - len(some)
    more = f" and {others} {'others' if others > 1 else 'other'}" if others else ""
    return f"{len(leaves)} leaves: {', '.join(some)}{more}" if some else f"{len(leaves)} leaves"
