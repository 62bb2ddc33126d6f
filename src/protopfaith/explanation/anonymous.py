"""An explanation that can be given away: without the names of images."""

from __future__ import annotations

from dataclasses import replace

from protopfaith.explanation.explanation import Explanation, PrototypeEvidence

HIDDEN = "training image"  # in the place of its name


def without_source_names(explanation: Explanation) -> Explanation:
    """The same, whose prototypes come from images without names."""

    def hidden(evidence: PrototypeEvidence) -> PrototypeEvidence:
        source, side, part = evidence.source, evidence.source_side, evidence.source_part
        return replace(
            evidence,
            source=None if source is None else replace(source, image=HIDDEN),
            source_side=None if side is None else replace(side, path=HIDDEN),
            source_part=None if part is None else replace(part, path=HIDDEN),
        )

    settings = {**explanation.settings, "mask": None}  # its path may have a name in it as well
    evidence = tuple(map(hidden, explanation.evidence))
    return replace(explanation, path="", settings=settings, evidence=evidence)
