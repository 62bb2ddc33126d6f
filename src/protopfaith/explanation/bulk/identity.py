"""Whether an image is the one that a row is about: its maps would else be shown on another picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from protopfaith.data.frames import split_frame
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decision import Decision
from protopfaith.files import is_file, sha256

ALIKE = 0.02  # of the largest distance; devices and number formats differ by less
LIKELY = 0.02  # of probabilities: what other devices and number formats may change


def fingerprint(path: Path | str) -> str:
    """The SHA-256 of an image file, and which of its frames is meant if not the first.

    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "a.png"
    >>> _ = file.write_bytes(b"")
    >>> fingerprint(file)[:8]
    'e3b0c442'
    """
    file, frame = split_frame(path)
    return sha256(file) if frame in (None, 1) else f"{sha256(file)}#{frame}"


def check_file(file: Path, row: dict[str, Any], folder: Path) -> None:
    """Raises if the file is another one than that which was explained, where the row has its fingerprint.

    Args:
        file: of the image
        row: of the data set
        folder: of the data set, for the sentence
    """
    known = row["file_sha256"]
    if known is None or not is_file(split_frame(file)[0]):  # not there: told where it is read
        return
    if fingerprint(file) != known:
        raise ProtoPFaithError(
            f"The file of {row['image']} is another one than that which {folder} explains, or was written "
            "anew since: its content has changed; give the file as it was with --image, or explain it again."
        )


def check_decision(decision: Decision, row: dict[str, Any], folder: Path) -> None:
    """Raises if the network says other things of an image than the row: distances, probabilities, a class.

    Args:
        decision: what it says now
        row: of the data set
        folder: of the data set, for the sentence
    """
    if not (_same_distances(decision, row) and _same_probabilities(decision, row)):
        raise ProtoPFaithError(
            f"The network sees another image than the one that {folder} calls {row['image']}: the file "
            "has changed, is another one, or the row was; give the image that was explained with --image."
        )


def _same_distances(decision: Decision, row: dict[str, Any]) -> bool:
    known = {one["prototype"]: one["distance"] for one in row["prototypes"]}
    now = decision.distances[list(known)].cpu()
    apart = (now - torch.tensor(list(known.values()), dtype=now.dtype)).abs()
    return not known or bool(apart.max() <= ALIKE * decision.distances.max().cpu())


def _same_probabilities(decision: Decision, row: dict[str, Any]) -> bool:
    now = decision.probabilities.double().cpu()
    known = torch.tensor(row["probabilities"], dtype=now.dtype)
    return known.shape == now.shape and bool((known - now).abs().max() <= LIKELY)
