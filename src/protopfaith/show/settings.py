"""How an explanation was made: every option of the command, the network, and the image."""

from __future__ import annotations

from protopfaith.explanation.explanation import Explanation
from protopfaith.show.wording.costs import cost


def settings_of(explanation: Explanation) -> dict[str, str]:
    """Every option with its value, then what they were applied to."""
    asked, names = explanation.settings, explanation.class_names
    versus, second = explanation.versus, explanation.second
    options = ", ".join(f"{name}={value}" for name, value in asked.get("options", {}).items())
    precision = explanation.precision_asked
    return {
        "--players": f"{asked.get('players_asked', '')}: {asked['players']}".lstrip(": "),
        "--precision": "not asked for" if precision is None else f"{precision:g}",
        "--budget": _budget(asked.get("budget"), asked.get("source_budget"), explanation),
        "--estimator": f"{explanation.method}, {cost(explanation)} used",
        "--option": options or "none",
        "--class": names[explanation.target],
        "--versus": "none" if versus is None else names[versus],
        "--explain": explanation.output,
        "--baseline": explanation.baseline,
        "--second-baseline": "none" if second is None else second.baseline,
        "--no-sources": _sources(explanation),
        "--no-coarse": "this is the coarse answer" if explanation.coarse else "this is the real answer",
        "--quick": "stands for larger --players, a smaller --budget, and no maps of source images",
        "--mask": "none" if explanation.mask is None else "the object is marked",
        "--device": asked.get("device") or "not recorded",
        "--autocast": asked.get("autocast") or "off: full float32",
        "--seed": str(asked["seed"]),
        **_applied(explanation),
    }


def _sources(explanation: Explanation) -> str:
    if any(one.source_side is not None for one in explanation.evidence):
        return "no: source images are shown"
    if any(one.source_part is not None for one in explanation.evidence):
        return "no: source images are shown, but without maps"
    return "yes"


def _budget(budget: int | None, of_sources: int | None, explanation: Explanation) -> str:
    bound = "as many as the precision takes" if budget is None else f"{budget:,} evaluations per game"
    if of_sources not in (None, budget) and any(one.source_side for one in explanation.evidence):
        bound += f" ({of_sources:,} on source images)"
    made = explanation.evaluations_in_all
    return bound if made is None else f"{bound}; {made:,} were made in all"


def _applied(explanation: Explanation) -> dict[str, str]:
    network, (height, width) = explanation.network, explanation.original_size
    seen = f"{explanation.pixels.shape[2]} x {explanation.pixels.shape[1]}"
    encoder = network["encoder"] or "own encoder"
    return {
        "image": f"{explanation.name}, {width} x {height} pixels, seen by the network at {seen}",
        "network": f"{encoder}, {network['prototypes']} prototypes, {network['similarity']} similarity",
        "weights (SHA-256)": network["weights_sha256"],
    }
