"""Counts what a program asks of prototype networks: plain passes, passes with gradients, moment passes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from protopfaith.network import FusedProtoPNet, ProtoPNet

KINDS = ("plain", "gradients", "moments", "moment gradients")


class Meter:
    """Images that go through any network, and seconds, for each step that it is told of.

    A step is named "what: detail"; details that name images are counted together.
    """

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.seconds: Counter[str] = Counter()
        self.current = "preparation"
        self.since = time.perf_counter()

    def step(self, what: str) -> None:
        """What came before has ended; `what` begins."""
        now = time.perf_counter()
        self.seconds[self.current] += now - self.since
        name, _, detail = what.partition(": ")
        known = detail if detail in {"curves", "axioms and sanity checks"} else "explanations"
        self.current, self.since = f"{name}: {known}" if detail else name, now

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Every network counts, also copies: images pass through `latent` or through fused kernels."""
        original, fused = ProtoPNet.latent, FusedProtoPNet._distances

        def latent(model: ProtoPNet, x: Any) -> Any:
            found = original(model, x)
            moments = not isinstance(found, Tensor)
            tensor = found.moments[0] if moments else found
            kind = KINDS[2 * moments + bool(tensor.requires_grad and torch.is_grad_enabled())]
            self.counts[self.current][kind] += len(tensor)
            return found

        def distances(model: FusedProtoPNet, kernels: Any, x: Tensor, *rest: Any) -> Tensor:
            self.counts[self.current][KINDS[0]] += len(x)
            return fused(model, kernels, x, *rest)

        ProtoPNet.latent = latent  # type: ignore[method-assign]
        FusedProtoPNet._distances = distances  # type: ignore[method-assign]
        try:
            yield
        finally:
            ProtoPNet.latent = original  # type: ignore[method-assign]
            FusedProtoPNet._distances = fused  # type: ignore[method-assign]
            self.step("end")

    def frame(self) -> pd.DataFrame:
        """One line for each step."""
        rows = {
            step: {**{kind: self.counts[step][kind] for kind in KINDS}, "seconds": round(seconds, 2)}
            for step, seconds in self.seconds.items()
        }
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("step")
        return pd.concat([frame, frame.sum().to_frame("all").T.rename_axis("step")])
