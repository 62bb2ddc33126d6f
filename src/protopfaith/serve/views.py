"""What pages show of a case: its blocks, from what is known now."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.picture import to_pil
from protopfaith.serve.case import Case
from protopfaith.serve.linked_pictures import LinkedPictures
from protopfaith.serve.pages import render, with_own_ids
from protopfaith.serve.prototypes import prototype_cards
from protopfaith.serve.whatif import WhatIf
from protopfaith.shapley import relative_error
from protopfaith.show.bars import share_bars
from protopfaith.show.encoding import data_uri
from protopfaith.show.findings import finding_cards
from protopfaith.show.heat import decided, scale_of
from protopfaith.show.pictures import DrawnPicture, Meaning
from protopfaith.show.report import make_legend
from protopfaith.show.sums import MOST_PROBABLE, evidence_bars
from protopfaith.show.tree import tree_view
from protopfaith.show.wording.decision import deciding, lead, seen
from protopfaith.show.wording.findings import overall
from protopfaith.show.wording.numbers import percent, with_error
from protopfaith.show.wording.outputs import adds_up, in_favor, where_heading
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.sharpness import sides, strength
from protopfaith.show.wording.trust import limits, remarks
from protopfaith.show.wording.verdicts import MEANINGS, Chip, Verdict, verdicts

ALONE: dict[str, Any] = {"named": None, "verdicts": [], "shared": None}  # an answer without a map
MOST_FINDINGS = 12  # whose probabilities stand beside the map


def blocks_of(case: Case) -> dict[str, str]:
    """All blocks of a case as it is now, but for its progress."""
    if case.decision is None:
        return {"answer": render("blocks/answer.html", **_waiting(case))}
    if case.result is None:
        return {
            "answer": render("blocks/answer.html", **_first_answer(case)),
            "pictures": _pictures_block(case, None),
            "bars": _bars_block(case),
            "findings": _findings_block(case, None),
        }
    explanation = case.explanation()
    return {
        "answer": with_own_ids(render("blocks/answer.html", **_answer(case, explanation)), f"{case.mark}a-"),
        "pictures": _pictures_block(case, explanation),
        "bars": _bars_block(case),
        "findings": _findings_block(case, explanation),
        "evidence": render(
            "blocks/evidence.html", evidence=evidence_bars(explanation), findings=bool(case.findings)
        ),
        "tree": _tree_block(case, explanation),
        "prototypes": _prototypes_block(case, explanation),
        "trust": render("blocks/trust.html", remarks=remarks(explanation), limits=limits(explanation)),
    }


def progress_block(case: Case) -> str:
    """How far the map is, in words."""
    view: dict[str, Any] = {
        "stage": case.stage,
        "heading": _heading(case),
        "queue": _queue(case),
        "texts": [],
        "share": None,
        "message": case.message,
    }
    shown = case.shown
    if shown is None or shown.result is None:
        view["texts"] = ["The first map follows in a moment."] if case.stage == "playing" else []
        return render("blocks/progress.html", **view)
    result, driving = shown.result, shown.resumable.driving
    mine = result.of_outputs([driving[-1]])
    error = relative_error(mine.values, mine.standard_errors)
    regions, sure = len(shown.resumable.players), int(mine.decided().sum())
    view["share"] = min(1.0, (case.precision / max(result.precision, 1e-9)) ** 2)
    view["texts"] = [
        sides(sure, regions),
        _strengths(error, result.precision, case.precision),
        f"{case.evaluations:,} evaluations: the network was asked so often with regions hidden.",
    ]
    return render("blocks/progress.html", **view)


def _strengths(mine: float, worst: float, asked: float) -> str:
    """How well strengths are known in the map that is shown, and in the worst one of a prototype."""
    known = strength(mine)
    if strength(worst) != known:
        known += f", in the worst map of a prototype {strength(worst)}"
    return f"How strongly regions speak is {known}; asked for: ±{percent(asked)}."


HEADINGS = {
    "failed": "This case cannot be explained.",
    "waiting": "Waiting for the network.",
    "stopping": "Stopping in a moment.",
    "stopped": "Stopped. It goes on from here when you like.",
    "done": "Done: as sharp as you asked.",
}


def _heading(case: Case) -> str:
    if case.stage in HEADINGS:
        return HEADINGS[case.stage]
    if case.is_coarse:
        return "A first map of large regions; finer ones follow."
    return "The map is becoming sharper."


def _queue(case: Case) -> str:
    """The place in the queue, where there is one."""
    if case.stage not in ("waiting", "playing") or not case.before:
        return ""
    others = "1 visitor is" if case.before == 1 else f"{case.before} visitors are"
    return f"{others} before you in the queue; the network takes turns."


def whatif_block(case: Case, found: WhatIf) -> str:
    """Both answers of the network, and what the map had predicted."""
    names, target = case.network.class_names, _target(case)
    order = found.before.argsort(descending=True).tolist()
    shown = list(dict.fromkeys([target, *([] if case.findings else [found.prediction]), *order]))[
        :MOST_PROBABLE
    ]
    count = len(found.hidden)
    tables = {"with all regions": found.before, f"without {_regions(count)}": found.after}
    if found.predicted is not None:
        tables["as the map predicts"] = found.predicted
    bars = [
        share_bars(caption, [(names[c], float(p[c]), percent(float(p[c]))) for c in shown])
        for caption, p in tables.items()
    ]
    preprocessing = case.network.explainer.preprocessing
    assert preprocessing is not None
    pixels = (preprocessing.denormalize(found.image.cpu()) * 255).round().byte()
    return render(
        "blocks/whatif.html",
        sentence=_findings_sentence(case, found) if case.findings else _whatif_sentence(found, names, target),
        score=_score_sentence(found),
        bars=bars,
        seen=_picture_uri(pixels),
        alt=f"The image without {_regions(count)}, as the network sees it",
    )


def _picture_uri(pixels: Any) -> str:
    from protopfaith.serve.networks import picture_file

    return data_uri(picture_file(to_pil(pixels)))


def _regions(count: int) -> str:
    return "1 region" if count == 1 else f"{count} regions"


def _whatif_sentence(found: WhatIf, names: tuple[str, ...], target: int) -> str:
    was, now = (percent(float(p[target])) for p in (found.before, found.after))
    moved = f"stays at {now}" if was == now else f"goes from {was} to {now}"
    said = f"Without {'it' if len(found.hidden) == 1 else 'them'}, {names[target]} {moved}"
    if found.predicted is not None:
        said += _foretold(now, percent(float(found.predicted[target])))
    changed = found.prediction != int(found.before.argmax())
    return f"{said}.{f' The network now sees {names[found.prediction]}.' if changed else ''}"


def _foretold(now: str, predicted: str) -> str:
    """What the map had predicted, as the end of a sentence.

    >>> _foretold("12%", "12%"), _foretold("12%", "40%")
    (', as the map had predicted', '; the map had predicted 40%')
    """
    return ", as the map had predicted" if predicted == now else f"; the map had predicted {predicted}"


def _findings_sentence(case: Case, found: WhatIf) -> str:
    """What becomes of the explained finding, and of all others about which something else is said now."""
    target = _target(case)
    said = _change(case, found, target)
    if found.predicted is not None:
        now, predicted = (percent(float(p[target])) for p in (found.after, found.predicted))
        said += _foretold(now, predicted)
    others = [
        _change(case, found, number)
        for number, one in enumerate(case.findings)
        if number != target and one.rule.verdict(float(found.after[number])) != one.verdict
    ]
    more = f" Also: {'; '.join(others)}." if others else ""
    return f"Without {'it' if len(found.hidden) == 1 else 'them'}, {said}.{more}"


def _change(case: Case, found: WhatIf, number: int) -> str:
    """What becomes of a finding."""
    one, before, after = case.findings[number], float(found.before[number]), float(found.after[number])
    now = one.rule.verdict(after)
    return f"{one.name} goes from {percent(before)} ({one.verdict}) to {percent(after)} ({now})"


def _score_sentence(found: WhatIf) -> str:
    before, after = found.score
    said = f"The score that the map explains changes by {after - before:+.3g}"
    if found.predicted_score is None or found.predicted_error is None:
        return f"{said}."
    predicted = with_error(found.predicted_score - before, found.predicted_error)
    return (
        f"{said}; the map had predicted {predicted}. "
        "Regions act together, so that both differ where several are hidden, or one that others stand in for."
    )


def _target(case: Case) -> int:
    assert case.decision is not None
    return case.decision.target


def _waiting(case: Case) -> dict[str, Any]:
    return {"case": case, "title": "One moment", "lead": "The network is asked.", "banners": []} | ALONE


def _first_answer(case: Case) -> dict[str, Any]:
    """What is known before any map."""
    decision, names = case.decision, case.network.class_names
    assert decision is not None
    p = decision.probabilities
    said = overall(case.findings) if case.findings else seen(names, p, unfamiliar=case.is_unfamiliar)
    return _base_answer(case) | {"lead": f"{said} Where that comes from follows in a moment."} | ALONE


def _answer(case: Case, explanation: Explanation) -> dict[str, Any]:
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    return _base_answer(case) | {
        "lead": lead(explanation),
        "named": _named(case, explanation, pictures),
        "verdicts": _verdicts(case, explanation),
        "shared": pictures,
    }


def _verdicts(case: Case, explanation: Explanation) -> list[Verdict]:
    """Those of the report; numbers of the map, and how it becomes finer, stand beside it."""
    of_decision, of_map = verdicts(explanation)
    text = MEANINGS.get(of_map.word, of_map.text)
    if of_map.kind == "rough":
        text = f"Only what is colored has a clear side so far. {text}"
    chips = (*of_decision.chips, *truth_chips(case))
    return [replace(of_decision, chips=chips), replace(of_map, text=text, command="")]


def _named(case: Case, explanation: Explanation, pictures: LinkedPictures) -> tuple[DrawnPicture, str] | None:
    """The prototype that the answer names, as the part of its source image that it is."""
    best = deciding(explanation)
    patch = None if best is None else case.network.patch(best.prototype)
    if best is None or patch is None:
        return None
    name = f"Prototype {best.prototype}"
    if best.source is not None and not best.source.exact:
        alike = pictures.cropped(
            patch.pixels, f"{name}: the part of a training image nearest to it", patch.box
        )
        return alike, f"The part of a training image nearest to prototype {best.prototype}"
    part = pictures.cropped(patch.pixels, f"{name}: the part of a training image that it is", patch.box)
    return part, f"{name}, a part of a training image"


def truth_chips(case: Case) -> list[Chip]:
    """Whether the explained finding is there, where that is known."""
    target = _target(case)
    known = case.known.findings[target] if case.findings and case.known is not None else -1
    if known < 0:
        return []
    one, there = case.findings[target], "present" if known else "absent"
    kind = {there: "good", "uncertain": ""}.get(one.verdict, "alert")
    right = {"good": "right: ", "alert": "wrong: "}.get(kind, "")
    return [Chip(f"{right}{one.name} is {there}", kind)]


def _base_answer(case: Case) -> dict[str, Any]:
    news = case.network.news
    return {"case": case, "title": case.title, "banners": [news] if news else []}


def _bars_block(case: Case) -> str:
    decision, names = case.decision, case.network.class_names
    assert decision is not None
    p = decision.probabilities
    ranked = p.argsort(descending=True).tolist()
    shown = ranked[: MOST_FINDINGS if case.findings else MOST_PROBABLE]
    shown += [c for c in (decision.target, decision.versus) if c is not None and c not in shown]
    caption = "Probabilities, calibrated" if decision.temperature else "Probabilities, not calibrated"
    caption += ", each of its own" if case.findings else ""
    table = share_bars(caption, [(names[c], float(p[c]), percent(float(p[c]))) for c in shown])
    return render("blocks/bars.html", table=table)


def _pictures_block(case: Case, explanation: Explanation | None) -> str:
    """The image, and the map as soon as there is one."""
    from torchvision.transforms.v2.functional import pil_to_tensor

    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    original = pil_to_tensor(case.picture.original)
    view: dict[str, Any] = {"map": None, "legend": None, "sentence": "", "shared": pictures}
    view["image"] = pictures.plain(original, f"The image {case.picture.name}")
    view["data"] = "null"
    view["where"] = "Where the decision comes from" if explanation is None else where_heading(explanation)
    if explanation is not None:
        regions, favor = explanation.class_map, in_favor(explanation, explanation.output)
        scale = scale_of([regions])
        where = lies(regions) or "is not clear yet"
        alt = f"Map of what speaks for {favor}, which {where}"
        meaning = Meaning("in the score", f"It speaks for {favor}.", f"It speaks against {favor}.")
        view["map"] = pictures.ours(original, regions, scale, alt, meaning)
        view["legend"] = make_legend([regions], "against", f"for {favor}")
        view["sentence"] = adds_up(explanation, explanation.output, regions)
        view["data"] = _numbers(explanation, pictures, case.mark)
    return with_own_ids(render("blocks/pictures.html", **view), case.mark)


def _numbers(explanation: Explanation, pictures: LinkedPictures, mark: str) -> str:
    """What the script tells of a region: its value for the class, and for every prototype that is shown."""
    numbers = pictures.data() | {"mark": mark}
    numbers["prototypes"] = [
        {
            "name": f"prototype {one.prototype}",
            "values": [round(v, 4) for v in one.test.flat.evidence.tolist()],
            "errors": [round(v, 4) for v in one.test.flat.standard_errors.nan_to_num(0).tolist()],
            "decided": decided(one.test.flat).int().tolist(),
        }
        for one in explanation.evidence[:5]
    ]
    # "<" never appears in the data, so nothing in it can end the element that holds it.
    return json.dumps(numbers, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _findings_block(case: Case, explanation: Explanation | None) -> str:
    """All findings, each with its map as soon as there is one."""
    if not case.findings:
        return ""
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    findings = case.findings if explanation is None else explanation.findings
    pixels = case.picture.pixels
    view = {"findings": finding_cards(findings, _target(case), pixels, pictures), "shared": pictures}
    maps = any(one.regions is not None for one in findings)
    return with_own_ids(render("blocks/findings.html", maps=maps, **view), f"{case.mark}f-")


def _tree_block(case: Case, explanation: Explanation) -> str:
    """The way of the image, where the network is a tree."""
    if explanation.route is None:
        return ""
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    scale = scale_of([one.test for one in explanation.evidence])
    tree = tree_view(explanation, scale, pictures, case.network.patch)
    return with_own_ids(render("blocks/tree.html", tree=tree, shared=pictures), f"{case.mark}w-")


def _prototypes_block(case: Case, explanation: Explanation) -> str:
    return with_own_ids(
        render("blocks/prototypes.html", **prototype_cards(case, explanation)), f"{case.mark}p-"
    )
