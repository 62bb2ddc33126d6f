"""The regions of an image that a question asks for."""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.settings import coarse_players, usual_window
from protopfaith.serve.question import Polygon, Question
from protopfaith.shapley import Players

SMALL_IMAGE = 128  # pixels of a side up to which windows are 8 pixels: such networks are quick
SMALL_WINDOW = 8
THIN = 0.5  # pixels: corners that lie nearer to one line make no region
FEW = 10  # regions up to which all coalitions are played at once, so that values are exact


def players_for(question: Question, image: Tensor, most: int) -> Players:
    """The regions to play with.

    Args:
        question: what is asked.
        image: C x H x W, as the network reads it.
        most: more regions than this are refused.

    >>> len(players_for(Question(players="windows:16"), torch.zeros(3, 48, 48), 100))
    9
    """
    if question.players == "drawn":
        return drawn_players(question.drawn, (image.shape[-2], image.shape[-1]))
    kind, _, number = question.players.partition(":")
    if kind == "superpixels":
        return _superpixels(image, min(int(number), most), most)
    side = int(number) if number else usual_side(image)
    count = math.ceil(image.shape[-2] / side) * math.ceil(image.shape[-1] / side)
    if count > most:
        raise ProtoPFaithError(
            f"Windows of {side} pixels make {count:,} regions, more than {most:,}; take larger ones."
        )
    return Players.windows(image.shape[-2:], side)


def _superpixels(image: Tensor, wanted: int, most: int) -> Players:
    """About as many as are wanted, but no more than `most`: SLIC may find some more than it is asked for."""
    found = Players.superpixels(image, wanted)
    while len(found) > most and wanted > 1:
        wanted = max(wanted * most // (len(found) + 1), 1)
        found = Players.superpixels(image, wanted)
    return found


def spec_of(question: Question, image: Tensor) -> int | str | Players:
    """The same as settings name it, so that source images are divided alike, and results are shared.

    >>> spec_of(Question(), torch.zeros(3, 96, 96))
    8
    """
    if question.players == "drawn":
        return drawn_players(question.drawn, (image.shape[-2], image.shape[-1]))
    kind, _, number = question.players.partition(":")
    if kind == "superpixels":
        return question.players
    return int(number) if number else usual_side(image)


def usual_side(image: Tensor) -> int:
    """Of windows where nothing is asked for."""
    if max(image.shape[-2:]) <= SMALL_IMAGE:
        return SMALL_WINDOW
    return usual_window(image.device, image.shape[-2:])


def first_players(players: Players, image: Tensor) -> Players | None:
    """Larger regions for the first map, where they are much fewer than those asked for."""
    coarse = coarse_players(image)
    return coarse if len(players) > 1.5 * len(coarse) else None


def drawn_players(polygons: tuple[Polygon, ...], size: tuple[int, int]) -> Players:
    """Regions drawn by hand, and everything else as one more, the first.

    Args:
        polygons: corners as shares of width and height; where two overlap, the later one has the pixels.
        size: height and width.

    >>> corner = ((0.0, 0.0), (0.5, 0.0), (0.5, 0.5), (0.0, 0.5))
    >>> drawn_players((corner,), (4, 4)).labels[0].tolist()
    [1, 1, 1, 0]
    """
    height, width = size
    canvas = Image.new("I", (width, height), 0)
    draw = ImageDraw.Draw(canvas)
    for number, polygon in enumerate(polygons, start=1):
        corners = np.array(polygon) * (width, height)
        if np.linalg.svd(corners - corners.mean(0), compute_uv=False)[-1] < THIN:
            raise ProtoPFaithError(
                f"Region {number} of those drawn is a line or a point; draw around an area."
            )
        draw.polygon([(x, y) for x, y in corners.tolist()], fill=number)
    found, labels = np.unique(np.array(canvas, dtype=np.int64), return_inverse=True)
    if len(found) < 2:
        raise ProtoPFaithError("The regions that are drawn leave nothing to compare; draw smaller ones.")
    covered = sorted(set(range(1, len(polygons) + 1)) - set(found.tolist()))
    if covered:
        raise ProtoPFaithError(f"Region {covered[0]} of those drawn is covered by later ones; leave it out.")
    return Players(torch.from_numpy(labels.reshape(height, width)), "drawn by hand")
