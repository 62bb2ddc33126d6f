"""What a case's folder is called: a name that changes with all that its explanation depends on."""

from __future__ import annotations

import re
from pathlib import Path

from protopfaith.data.frames import split_frame
from protopfaith.data.images import no_image
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decision import choose_output
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.picture import MaskLike, open_mask
from protopfaith.explanation.settings import Settings, stable_text
from protopfaith.files import is_file, is_folder, reason, sha256

# Settings that do not belong to a game, so that its key leaves them out, but change what is shown.
AROUND = ("second_baseline", "sources", "source_parts", "duplicate_tolerance")


def case_name(
    explainer: Explainer,
    path: Path,
    settings: Settings,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    mask: MaskLike | None = None,
    name: str | None = None,
) -> str:
    """The image's name, and a key that is another one for another image, network, question or setting.

    Args:
        explainer: of the network
        path: of the image; raises if it cannot be read
        settings: how the image is explained
        target: the class that is explained
        versus: the class that it is compared with
        mask: where the object is
        name: in the place of the file's
    """
    file, frame = split_frame(path)
    if not is_file(file):
        missing = ProtoPFaithError("There is no image file of that name; check the path.")
        raise no_image(file) if is_folder(file) else missing
    asked = _asked(explainer, settings, target, versus, mask) | {"frame": frame}
    given = str(sorted((what, stable_text(value)) for what, value in asked.items() if value is not None))
    try:
        content = sha256(file)
    except OSError as error:
        raise ProtoPFaithError(f"The file cannot be read ({reason(error)}); check it.") from error
    key = settings.key(explainer.weights_hash, content, given)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", path.stem if name is None else name).lstrip(".")[:60] or "image"
    mark = "" if frame is None else f"-frame{frame}"
    return f"{stem}{mark}-{key[:8]}"


def _asked(
    explainer: Explainer,
    settings: Settings,
    target: str | int | None,
    versus: str | int | None,
    mask: MaskLike | None,
) -> dict[str, object]:
    """What else changes an explanation than what changes a game's values, where it is not None."""
    changed, reference = settings.changed(), explainer.reference
    return {
        **{name: changed[name] for name in AROUND if name in changed},
        "target": target,
        "versus": versus,
        "mask": None if mask is None else open_mask(mask, explainer.size),
        "output": choose_output(explainer.model, settings, versus),
        "temperature": None if reference is None else reference.by_finding or reference.temperature,
    }
