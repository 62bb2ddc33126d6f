"""By which chances a sample is drawn: sizes are allotted anew in every phase, for each stream apart."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

import torch
from torch import Tensor

from protopfaith.constants import remembered
from protopfaith.shapley.estimators.adaptive_owen.pairs import Layout

KEPT = 2048  # samples that the surrogate learns from (the fit costs their cube); later ones are only added up
PHASES = (0, 256, 512, 1024, KEPT)  # samples after which sizes are allotted anew, whatever the budget
STREAMS = 8  # of samples: sizes of each are drawn as the others tell


def phase(count: int) -> tuple[int, int]:
    """The number of the phase of the next sample, and where that phase ends, after `count` samples."""
    number = bisect_right(PHASES, count)
    return number - 1, PHASES[number]


@lru_cache(maxsize=64)
def spent(count: int, layout: Layout) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Shares of `count` samples that were drawn in each phase, and that are complements of such."""
    number, partner = torch.arange(count), layout.partners(count)
    own = torch.bucketize(number, torch.tensor(PHASES[1:-1]), right=True)
    second = partner < number

    def share(phases: Tensor) -> tuple[float, ...]:
        return tuple((torch.bincount(phases, minlength=len(PHASES) - 1).double() / count).tolist())

    return share(own[~second]), share(own[partner[second]])


def of_streams(rows: Tensor, start: int = 0) -> Tensor:
    """Of the streams' rows (streams, m) each sample's own, (m,); the first has the number `start`."""
    streams, count = rows.shape
    return rows.gather(0, stream_of(count, streams, start % streams, rows.device)[None])[0]


@remembered(32)
def stream_of(count: int, streams: int, start: int, device: torch.device) -> Tensor:
    """The stream of each of the samples (m,), the first of which has the number `start`: they take turns."""
    return (start + torch.arange(count, device=device)) % streams


@remembered(32)
def of_others(count: int, streams: int, device: torch.device) -> Tensor:
    """Whether each of the samples is of another stream, (streams, m)."""
    return stream_of(count, streams, 0, device) != torch.arange(streams, device=device)[:, None]
