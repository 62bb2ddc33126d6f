"""One function per part variant. Bird coordinates: body radius about one, x forward, y down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protopfaith.data.birds.canvas import Canvas, Color, ellipse, mix, smooth, stroke
from protopfaith.data.birds.species import PARTS

NUMBER = {name: number for number, name in enumerate(PARTS, start=1)}
BLACK: Color = (28, 24, 30)
WHITE: Color = (250, 246, 236)


@dataclass(frozen=True)
class Plumage:
    """The colors of one bird; they say nothing about its species."""

    body: Color
    wing: Color
    breast: Color
    crest: Color
    accent: Color
    beak: Color
    legs: Color


Painter = Callable[[Canvas, Plumage], None]
VARIANTS: dict[tuple[str, str], Painter] = {}


def variant(part: str, name: str) -> Callable[[Painter], Painter]:
    def add(painter: Painter) -> Painter:
        VARIANTS[part, name] = painter
        return painter

    return add


# --- body, head and eye: the same for all ------------------------------------------------------------

BODY = smooth(
    [
        (-1.12, 0.12),
        (-0.75, -0.42),
        (-0.1, -0.72),
        (0.55, -0.72),
        (0.95, -0.2),
        (0.85, 0.42),
        (0.35, 0.8),
        (-0.4, 0.72),
    ]
)
HEAD = ellipse(0.72, -0.72, 0.56, 0.53)
BREAST = smooth([(0.62, -0.3), (0.95, -0.16), (0.87, 0.42), (0.38, 0.79), (-0.12, 0.78), (0.12, 0.32)])
WING = smooth(
    [(0.28, -0.38), (0.42, 0.02), (0.08, 0.34), (-0.6, 0.42), (-1.28, 0.36), (-0.78, 0.0), (-0.3, -0.36)]
)
EYE = (0.88, -0.8)


def paint_body(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(BODY, plumage.body, NUMBER["body"])


def paint_head(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(HEAD, plumage.body, NUMBER["head"])


# --- breast ------------------------------------------------------------


@variant("breast", "plain")
def breast_plain(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(BREAST, plumage.breast, NUMBER["breast"])


@variant("breast", "bib")
def breast_bib(canvas: Canvas, plumage: Plumage) -> None:
    breast_plain(canvas, plumage)
    patch = smooth([(0.62, -0.3), (0.93, -0.17), (0.93, 0.12), (0.72, 0.24), (0.5, 0.0)])
    canvas.fill(patch, mix(plumage.breast, plumage.body, 0.55), NUMBER["breast"])


@variant("breast", "spots")
def breast_spots(canvas: Canvas, plumage: Plumage) -> None:
    breast_plain(canvas, plumage)
    spots = [(0.74, -0.06), (0.52, 0.16), (0.8, 0.24), (0.34, 0.42), (0.62, 0.48), (0.12, 0.62), (0.4, 0.68)]
    for x, y in spots:
        canvas.fill(ellipse(x, y, 0.1, 0.085), BLACK, NUMBER["breast"])


@variant("breast", "band")
def breast_band(canvas: Canvas, plumage: Plumage) -> None:
    breast_plain(canvas, plumage)
    canvas.fill(
        stroke([(0.34, 0.08), (0.64, 0.16), (0.95, 0.06)], [0.26, 0.3, 0.26]), BLACK, NUMBER["breast"]
    )


@variant("breast", "bars")
def breast_bars(canvas: Canvas, plumage: Plumage) -> None:
    breast_plain(canvas, plumage)
    bars = [
        [(0.5, -0.08), (0.72, -0.02), (0.95, -0.06)],
        [(0.32, 0.18), (0.62, 0.24), (0.92, 0.18)],
        [(0.2, 0.42), (0.52, 0.5), (0.84, 0.42)],
        [(0.06, 0.64), (0.3, 0.7), (0.58, 0.66)],
    ]
    for bar in bars:
        canvas.fill(stroke(bar, [0.08, 0.12, 0.08]), BLACK, NUMBER["breast"])


# --- wing ------------------------------------------------------------


@variant("wing", "plain")
def wing_plain(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(WING + np.array([0.0, 0.07]), mix(plumage.body, BLACK, 0.3), NUMBER["wing"])
    canvas.fill(WING, plumage.wing, NUMBER["wing"])


@variant("wing", "edged")
def wing_edged(canvas: Canvas, plumage: Plumage) -> None:
    wing_plain(canvas, plumage)
    shade = mix(plumage.wing, BLACK, 0.45)
    for path in ([(0.1, 0.16), (-0.5, 0.26), (-1.1, 0.33)], [(-0.05, -0.02), (-0.5, 0.1), (-1.0, 0.24)]):
        canvas.fill(stroke(path, [0.05, 0.09, 0.03]), shade, NUMBER["wing"])


@variant("wing", "double bar")
def wing_double_bar(canvas: Canvas, plumage: Plumage) -> None:
    wing_plain(canvas, plumage)
    for shift in (0.0, -0.36):
        bar = [(0.1 + shift, -0.3 + 0.1 * (shift < 0)), (0.08 + shift, 0.02), (-0.06 + shift, 0.33)]
        canvas.fill(stroke(bar, [0.13, 0.18, 0.13]), WHITE, NUMBER["wing"])


@variant("wing", "pearls")
def wing_pearls(canvas: Canvas, plumage: Plumage) -> None:
    wing_plain(canvas, plumage)
    for x, y in [
        (0.18, -0.16),
        (-0.14, -0.14),
        (0.1, 0.12),
        (-0.24, 0.14),
        (-0.56, 0.14),
        (-0.84, 0.28),
        (-0.48, -0.06),
    ]:
        canvas.fill(ellipse(x, y, 0.1, 0.1), WHITE, NUMBER["wing"])


@variant("wing", "epaulet")
def wing_epaulet(canvas: Canvas, plumage: Plumage) -> None:
    wing_plain(canvas, plumage)
    patch = smooth([(0.28, -0.36), (0.4, 0.0), (0.14, 0.22), (-0.2, 0.02), (-0.16, -0.34)])
    canvas.fill(patch, plumage.accent, NUMBER["wing"])
    canvas.fill(
        stroke([(-0.24, -0.3), (-0.22, 0.06), (0.14, 0.27)], [0.08, 0.11, 0.08]), WHITE, NUMBER["wing"]
    )


# --- tail ------------------------------------------------------------


def _feathers(
    canvas: Canvas, plumage: Plumage, paths: list[list[tuple[float, float]]], widths: list[float]
) -> None:
    for index, path in enumerate(paths):
        color = mix(plumage.wing, BLACK, 0.28 if index % 2 else 0.08)
        canvas.fill(stroke(path, widths), color, NUMBER["tail"])


@variant("tail", "square")
def tail_square(canvas: Canvas, plumage: Plumage) -> None:
    paths = [[(-0.8, 0.1 + d), (-1.3, 0.3 + d), (-1.82, 0.45 + 1.4 * d)] for d in (-0.08, 0.08)]
    _feathers(canvas, plumage, paths, [0.3, 0.28, 0.24])


@variant("tail", "round")
def tail_round(canvas: Canvas, plumage: Plumage) -> None:
    shape = smooth([(-0.8, 0.0), (-1.3, 0.1), (-1.78, 0.3), (-1.86, 0.56), (-1.6, 0.64), (-0.8, 0.36)])
    canvas.fill(shape, mix(plumage.wing, BLACK, 0.08), NUMBER["tail"])
    canvas.fill(
        stroke([(-0.9, 0.18), (-1.75, 0.5)], [0.06, 0.08]), mix(plumage.wing, BLACK, 0.4), NUMBER["tail"]
    )


@variant("tail", "forked")
def tail_forked(canvas: Canvas, plumage: Plumage) -> None:
    paths = [
        [(-0.75, 0.05), (-1.35, 0.02), (-1.8, -0.12), (-2.15, -0.42)],
        [(-0.75, 0.2), (-1.3, 0.4), (-1.7, 0.7), (-1.95, 1.1)],
    ]
    _feathers(canvas, plumage, paths, [0.34, 0.32, 0.24, 0.04])


@variant("tail", "rackets")
def tail_rackets(canvas: Canvas, plumage: Plumage) -> None:
    shaft = mix(plumage.wing, BLACK, 0.35)
    for x, y, bend in ((-2.02, 0.08, -0.08), (-1.86, 0.78, 0.08)):
        canvas.fill(
            stroke([(-0.8, 0.15), (-1.4, 0.15 + 0.3 * y + bend), (x, y)], [0.22, 0.1, 0.08]),
            shaft,
            NUMBER["tail"],
        )
        canvas.fill(ellipse(x, y, 0.27, 0.24), shaft, NUMBER["tail"])
        canvas.fill(ellipse(x, y, 0.16, 0.14), plumage.accent, NUMBER["tail"])


@variant("tail", "raised fan")
def tail_raised_fan(canvas: Canvas, plumage: Plumage) -> None:
    tips = [(-2.0, -0.15), (-1.95, -0.6), (-1.7, -1.0), (-1.32, -1.24)]
    paths = [[(-0.75, 0.0), (-0.75 + 0.5 * (x + 0.75), 0.55 * y), (x, y)] for x, y in tips]
    _feathers(canvas, plumage, paths, [0.2, 0.34, 0.4])
    for x, y in tips:
        canvas.fill(ellipse(x + 0.1, y + 0.1, 0.12, 0.12), WHITE, NUMBER["tail"])


# --- crest ------------------------------------------------------------


@variant("crest", "none")
def crest_none(canvas: Canvas, plumage: Plumage) -> None:
    """A smooth crown."""


@variant("crest", "tuft")
def crest_tuft(canvas: Canvas, plumage: Plumage) -> None:
    for x, y in ((0.28, -1.36), (0.46, -1.46)):
        canvas.fill(stroke([(0.6, -1.0), (x, y)], [0.26, 0.05]), plumage.crest, NUMBER["crest"])


@variant("crest", "spire")
def crest_spire(canvas: Canvas, plumage: Plumage) -> None:
    shape = [
        (1.12, -1.08),
        (0.92, -1.4),
        (0.62, -1.78),
        (0.22, -2.12),
        (0.2, -1.5),
        (0.18, -0.9),
        (0.6, -0.8),
    ]
    canvas.fill(smooth(shape), plumage.crest, NUMBER["crest"])


@variant("crest", "fan")
def crest_fan(canvas: Canvas, plumage: Plumage) -> None:
    tips = [(0.12, -1.62), (0.48, -1.86), (0.88, -1.88), (1.24, -1.66)]
    for x, y in tips:
        feather = stroke([(0.7, -1.05), ((0.7 + x) / 2, (y - 1.05) / 2), (x, y)], [0.14, 0.2, 0.2])
        canvas.fill(feather, plumage.crest, NUMBER["crest"])
        canvas.fill(ellipse(x, y, 0.16, 0.16), plumage.crest, NUMBER["crest"])
        canvas.fill(ellipse(x, y, 0.09, 0.09), BLACK, NUMBER["crest"])


@variant("crest", "plume")
def crest_plume(canvas: Canvas, plumage: Plumage) -> None:
    for lift in (0.0, 0.3):
        path = [
            (0.75, -1.08),
            (0.3, -1.36 - lift),
            (-0.2, -1.42 - lift),
            (-0.62, -1.2 - lift),
            (-0.7, -0.92 - lift),
        ]
        canvas.fill(stroke(path, [0.24, 0.2, 0.17, 0.15, 0.04]), plumage.crest, NUMBER["crest"])


# --- beak ------------------------------------------------------------


def _two_halves(
    canvas: Canvas, color: Color, upper: list[tuple[float, float]], lower: list[tuple[float, float]]
) -> None:
    canvas.fill(smooth(lower), mix(color, BLACK, 0.3), NUMBER["beak"])
    canvas.fill(smooth(upper), color, NUMBER["beak"])


@variant("beak", "cone")
def beak_cone(canvas: Canvas, plumage: Plumage) -> None:
    upper = [(1.16, -0.88), (1.38, -0.82), (1.62, -0.62), (1.36, -0.64), (1.16, -0.64)]
    lower = [(1.16, -0.68), (1.36, -0.66), (1.58, -0.61), (1.34, -0.5), (1.14, -0.5)]
    _two_halves(canvas, plumage.beak, upper, lower)


@variant("beak", "slim")
def beak_slim(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(
        stroke([(1.15, -0.66), (1.5, -0.66), (1.86, -0.62)], [0.22, 0.14, 0.03]), plumage.beak, NUMBER["beak"]
    )


@variant("beak", "sickle")
def beak_sickle(canvas: Canvas, plumage: Plumage) -> None:
    path = [(1.12, -0.7), (1.5, -0.74), (1.84, -0.52), (2.02, -0.12), (2.02, 0.22)]
    canvas.fill(stroke(path, [0.28, 0.23, 0.19, 0.14, 0.04]), plumage.beak, NUMBER["beak"])


@variant("beak", "giant")
def beak_giant(canvas: Canvas, plumage: Plumage) -> None:
    upper = [(1.1, -1.06), (1.5, -1.14), (1.9, -0.98), (2.1, -0.58), (1.9, -0.62), (1.5, -0.66), (1.1, -0.62)]
    lower = [(1.1, -0.68), (1.5, -0.68), (1.96, -0.6), (1.5, -0.4), (1.1, -0.42)]
    _two_halves(canvas, plumage.beak, upper, lower)
    canvas.fill(smooth([(2.1, -0.58), (1.93, -0.94), (1.74, -1.04), (1.78, -0.62)]), BLACK, NUMBER["beak"])


# --- eye ------------------------------------------------------------


@variant("eye", "plain")
def eye_plain(canvas: Canvas, plumage: Plumage) -> None:
    x, y = EYE
    canvas.fill(ellipse(x, y, 0.13, 0.13), BLACK, NUMBER["eye"])
    canvas.fill(ellipse(x + 0.04, y - 0.05, 0.05, 0.05), WHITE, NUMBER["eye"])


@variant("eye", "ring")
def eye_ring(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(ellipse(*EYE, 0.21, 0.21), WHITE, NUMBER["eye"])
    eye_plain(canvas, plumage)


@variant("eye", "mask")
def eye_mask(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(stroke([(1.24, -0.72), (0.88, -0.8), (0.24, -0.66)], [0.16, 0.42, 0.2]), BLACK, NUMBER["eye"])
    canvas.fill(ellipse(*EYE, 0.13, 0.13), WHITE, NUMBER["eye"])
    canvas.fill(ellipse(*EYE, 0.09, 0.09), BLACK, NUMBER["eye"])


@variant("eye", "brow")
def eye_brow(canvas: Canvas, plumage: Plumage) -> None:
    canvas.fill(stroke([(1.2, -0.92), (0.82, -1.06), (0.22, -0.86)], [0.12, 0.24, 0.1]), WHITE, NUMBER["eye"])
    canvas.fill(stroke([(1.2, -0.8), (0.8, -0.84), (0.28, -0.66)], [0.06, 0.12, 0.06]), BLACK, NUMBER["eye"])
    eye_plain(canvas, plumage)


# --- legs ------------------------------------------------------------


def _legs(canvas: Canvas, color: Color) -> None:
    for x in (0.0, 0.32):
        canvas.fill(stroke([(x, 0.66), (x + 0.05, 1.12)], [0.1, 0.09]), color, NUMBER["legs"])
        canvas.fill(stroke([(x - 0.1, 1.13), (x + 0.22, 1.13)], [0.1, 0.1]), color, NUMBER["legs"])


@variant("legs", "bright")
def legs_bright(canvas: Canvas, plumage: Plumage) -> None:
    _legs(canvas, plumage.legs)


@variant("legs", "dark")
def legs_dark(canvas: Canvas, plumage: Plumage) -> None:
    _legs(canvas, (62, 52, 56))
