"""A network asked about images from elsewhere: which of them can be judged, and what it says to these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.arguments import named, some_of, whole_number
from protopfaith.data import Preprocessing
from protopfaith.data.external import External
from protopfaith.data.findings import loosely
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.subgroups import subgroups
from protopfaith.evaluation.prediction import NOT_FINITE
from protopfaith.network import PatchNetwork
from protopfaith.registry import did_you_mean


@dataclass(frozen=True, eq=False)
class ExternalAnswers:
    """What a network says to images from elsewhere.

    Args:
        external: the images
        asked: which of them it was asked about: those that it was neither trained nor chosen on
        judged: those of them that could be read and have finite logits
        errors: why the others could not be judged
        logits: of the judged ones, on the CPU
        notes: sentences for people
    """

    external: External
    asked: list[int]
    judged: list[int]
    errors: dict[int, str]
    logits: Tensor
    notes: list[str]

    @property
    def groups(self) -> list[str]:
        """Which of the judged images belong together."""
        return [self.external.samples[index].group for index in self.judged]

    def subgroups(self, columns: Sequence[str] | None) -> tuple[dict[str, list[int]], list[str]]:
        """The places among the judged images of each subgroup, by its name, and sentences about columns."""
        members, notes = subgroups([self.external.samples[index].about for index in self.judged], columns)
        named_members = {
            f"{key}: {value}": at for key, values in members.items() for value, at in values.items()
        }
        return named_members, notes


def ask_about(
    external: External,
    indices: Sequence[int],
    model: PatchNetwork,
    preprocessing: Preprocessing,
    *,
    seen: Collection[str],
    batch_size: int,
) -> ExternalAnswers:
    """Asks a network about images from elsewhere; raises if none can be judged.

    Args:
        external: the images
        indices: those of which the truth is known
        model: the network
        preprocessing: how images are prepared for it
        seen: fingerprints of the images that it was trained or chosen on; these are left out
        batch_size: images in one forward pass
    """
    fresh, notes = _not_seen(external, indices, seen)
    logits, errors = _logits(model, preprocessing, external, fresh, batch_size)
    judged = [index for index in fresh if index not in errors]
    if not judged:
        raise ProtoPFaithError(f"No image of {external.name} could be judged. {next(iter(errors.values()))}")
    return ExternalAnswers(external, fresh, judged, errors, logits, notes)


def _not_seen(
    external: External, indices: Sequence[int], seen: Collection[str]
) -> tuple[list[int], list[str]]:
    """The images that the network was neither trained nor chosen on, and a sentence about the others."""
    fresh = [index for index in indices if not len(seen) or external.sha256(index) not in seen]
    if not fresh:
        raise ProtoPFaithError(
            f"No image of {external.name} is left to judge the network on, since it was trained or chosen on "
            "all of them; give images that it has not seen."
        )
    return fresh, _about_seen(len(indices) - len(fresh))


def match_classes(labels: Sequence[str], class_names: Sequence[str]) -> tuple[list[int | None], list[str]]:
    """The class of each label, by its name or else whatever its case, spaces and underscores; None where the
    network has no such class, with a sentence about these.

    >>> match_classes(["Lung_Opacity", "normal", "other"], ["normal", "lung opacity"])[0]
    [1, 0, None]
    """
    exact = {name: index for index, name in enumerate(class_names)}
    counts = Counter(map(loosely, class_names))
    loose = {loosely(name): i for i, name in enumerate(class_names) if counts[loosely(name)] == 1}
    found = [exact.get(label, loose.get(loosely(label))) for label in labels]
    unknown = Counter(label for label, index in zip(labels, found, strict=True) if index is None)
    if not unknown:
        return found, []
    name = next(iter(unknown))
    if all(index is None for index in found):
        raise ProtoPFaithError(
            f"The network knows none of the classes of these images, such as {name[:80]!r}; "
            f"{did_you_mean(name, class_names)}"
        )
    some = some_of((f"{label[:80]!r} ({count})" for label, count in unknown.most_common()), 5)
    return found, [f"Images of classes that the network does not have are left out: {some}."]


@torch.no_grad()
def _logits(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    external: External,
    indices: Sequence[int],
    batch_size: int,
) -> tuple[Tensor, dict[int, str]]:
    """The logits of the images that can be read (on the CPU), and why there are none of the others."""
    whole_number(batch_size, "The batch size", least=1)
    device = model.prototypes.device
    rows, errors = [torch.empty(0, len(model.class_names))], {}
    for start in range(0, len(indices), batch_size):
        pixels = {}
        for index in indices[start : start + batch_size]:
            try:
                pixels[index] = external.pixels(index)
            except ProtoPFaithError as error:
                errors[index] = str(error)
        if not pixels:
            continue
        logits = model(preprocessing.normalize(torch.stack(list(pixels.values())).to(device))).cpu().float()
        finite = logits.isfinite().all(1)
        for index, good in zip(pixels, finite.tolist(), strict=True):
            if not good:
                errors[index] = NOT_FINITE.format(named(external.samples[index].path))
        rows.append(logits[finite])
    return torch.cat(rows), errors


def _about_seen(count: int) -> list[str]:
    if not count:
        return []
    return [f"Left out, as the network was trained or chosen on them: {count} of the images."]
