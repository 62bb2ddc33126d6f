"""What a trained network is compared with when it is explained: the average training image, usual distances
and one temperature, kept with the run as `reference.json`."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import finite_number, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import plain_file, read_json
from protopfaith.network import PrototypeNetwork, outcome_of
from protopfaith.training.calibration import (
    TEMPERATURES,
    Calibrator,
    as_calibrator,
    calibrator_from_json,
    calibrator_to_json,
)
from protopfaith.training.run import Run
from protopfaith.training.thresholds import HALF, FindingRule, rules_from_json, rules_to_json
from protopfaith.training.typical import Typical
from protopfaith.writing import atomic

NAME = "reference.json"
FORMATS = (2, 3)  # the second one where findings have calibrations of their own
MUCH = 0.75  # of its accuracy is left to a network that knows images of which half is hidden
MANY = 10**12  # more images than anybody has


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Measured on the images of a run.

    Args:
        weights_sha256: of the network that it belongs to.
        mean_similarities: (P,), float64: of every prototype, over training images.
        images: how many of them.
        usual_distances: (C,), float64: 99% of a class's validation images are nearer than this to the nearest
            prototype of their class; NaN where there are none. It decides where `typical` is not known.
        temperature: logits divided by it give calibrated probabilities; None with too few validation images.
            Of several findings, one for all.
        validation_images: how many it was fitted on.
        half_hidden: balanced accuracy on validation images, and again with half of each hidden; None where
            it was not measured.
        hidden_seen: whether the network was trained on images with hidden regions; None where not known.
        rules: how the probabilities of several findings are read, one for each; None for classes.
        by_finding: how the logits of several findings are calibrated, each by itself; None for classes, and
            in runs of earlier versions.
        typical: how images usually look; None with too few images, and in runs of earlier versions.
    """

    weights_sha256: str
    mean_similarities: Tensor
    images: int
    usual_distances: Tensor
    temperature: float | None
    validation_images: int
    half_hidden: tuple[float, float] | None = None
    hidden_seen: bool | None = None
    rules: tuple[FindingRule, ...] | None = None
    by_finding: Calibrator | None = None
    typical: Typical | None = None

    @property
    def calibrator(self) -> Calibrator | None:
        """What is done to logits before they become probabilities; None: nothing was fitted."""
        if self.by_finding is None and self.temperature is None:
            return None
        return self.by_finding or as_calibrator(self.temperature)

    def __repr__(self) -> str:
        fitted = "not calibrated" if self.temperature is None else f"temperature={self.temperature:.3g}"
        return (
            f"Reference({self.images} training images, {fitted}, {self.validation_images} validation images)"
        )

    def fits(self, model: PrototypeNetwork) -> bool:
        """Whether it has a number for each prototype and each class of a network.

        Args:
            model: the network
        """
        prototypes, classes = len(model.prototypes), len(model.class_names)
        several = outcome_of(model) == "several"
        calibrated = None if self.by_finding is None else self.by_finding.temperatures
        return (
            (len(self.mean_similarities), len(self.usual_distances)) == (prototypes, classes)
            and all(one is None or (several and len(one) == classes) for one in (self.rules, calibrated))
            and (self.typical is None or len(self.typical.means) == (1 if several else classes))
        )

    def about_hidden(self) -> str:
        """A sentence where the network is off on images with hidden regions, which coalitions are."""
        if self.half_hidden is None or self.half_hidden[1] >= MUCH * self.half_hidden[0]:
            return ""
        whole, half = self.half_hidden
        never = "was never shown images with hidden regions, and " if self.hidden_seen is False else ""
        return (
            f"This network {never}has a balanced accuracy of {half:.0%} when half of the image is hidden, "
            f"and of {whole:.0%} when nothing is (validation images): what it says about single regions is "
            "partly about their absence. Training with augmentation.hide.share=0.5 makes it know such images."
        )

    def save(self, folder: Path | str) -> Path:
        """Writes `reference.json` into a run's folder."""
        path = Path(folder) / NAME
        values = {
            "format": FORMATS[self.by_finding is not None],
            "weights_sha256": self.weights_sha256,
            "mean_similarities": self.mean_similarities.tolist(),
            "images": self.images,
            "usual_distances": [None if math.isnan(d) else d for d in self.usual_distances.tolist()],
            "temperature": self.temperature,
            "validation_images": self.validation_images,
            "half_hidden": self.half_hidden,
            "hidden_seen": self.hidden_seen,
            "findings": rules_to_json(self.rules),
            "calibration": calibrator_to_json(self.by_finding),
            "typical": None if self.typical is None else self.typical.to_json(),
        }
        with atomic(path) as partial:
            partial.write_text(json.dumps(values, indent=1), encoding="utf-8")
        return path

    @staticmethod
    def load(folder: Path | str, weights_sha256: str) -> Reference | None:
        """What lies in a run's folder; None where nothing is there, or it belongs to other weights."""
        path = Path(folder) / NAME
        try:
            values = read_json(plain_file(path), "a run")
            if values["weights_sha256"] != weights_sha256 or values.get("format") not in FORMATS:
                return None
            return _from_json(values)
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, ProtoPFaithError):
            return None  # measured anew


def _from_json(values: dict[str, Any]) -> Reference:
    """What `save` wrote; raises LookupError, TypeError, ValueError or ours for anything else."""
    temperature, hidden, seen = values["temperature"], values.get("half_hidden"), values.get("hidden_seen")
    if not isinstance(seen, bool | None):
        raise TypeError("hidden_seen is not what was measured")
    return Reference(
        values["weights_sha256"],
        _numbers(values["mean_similarities"]),
        whole_number(values["images"], "images", least=1, most=MANY),
        _numbers(values["usual_distances"], least=0, known=False),
        None if temperature is None else float(_numbers([temperature], *TEMPERATURES)[0]),
        whole_number(values["validation_images"], "validation_images", least=0, most=MANY),
        None if hidden is None else _pair(_numbers(hidden, 0, 1).tolist()),
        seen,
        rules_from_json(values.get("findings")),
        calibrator_from_json(values.get("calibration")),
        Typical.from_json(values.get("typical")),
    )


def _numbers(
    values: list[Any], least: float | None = None, most: float | None = None, *, known: bool = True
) -> Tensor:
    """Finite numbers; where they need not be known, None is not-a-number."""
    what = "A number of the reference"
    found = [
        math.nan if one is None and not known else finite_number(one, what, least=least, most=most)
        for one in values
    ]
    return torch.tensor(found, dtype=torch.float64)


def _pair(values: list[float]) -> tuple[float, float]:
    first, second = values
    return first, second


def weights_hash(model: PrototypeNetwork) -> str:
    """SHA-256 of all weights: the same network gives the same explanations."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def rules_of(reference: Reference | None, count: int) -> tuple[FindingRule, ...]:
    """How the probabilities of so many findings are read; where nothing was measured, one half decides."""
    return (None if reference is None else reference.rules) or (HALF,) * count


def reference_of(run: Run, model: PrototypeNetwork) -> Reference | None:
    """What is kept with a run; None where it was never measured, or is of other prototypes or classes."""
    found = Reference.load(run.folder, weights_hash(model))
    return found if found is not None and found.fits(model) else None


def temperature_of(run: Run, model: PrototypeNetwork) -> float | None:
    """The temperature that is kept with a run; None where it was never fitted."""
    found = reference_of(run, model)
    return None if found is None else found.temperature
