"""Many images in one call: each case in a folder of its own, finished ones are not done again."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decomposition import check_different, find_class
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import rehearse
from protopfaith.explanation.local import as_explainer, explain_with
from protopfaith.explanation.progress import Bar
from protopfaith.explanation.settings import BaselineLike, Settings, plain, with_autocast, with_budget
from protopfaith.files import atomic, sha256
from protopfaith.network import ProtoPNet
from protopfaith.show.figures import check_format, figure
from protopfaith.show.index import write_index
from protopfaith.show.wording.numbers import percent
from protopfaith.training import Run

logger = logging.getLogger("protopfaith")
SETTINGS = {field.name for field in fields(Settings)} - {"autocast"}  # whose words depend on the device


@dataclass(frozen=True)
class Failure:
    """An image that could not be explained, and why."""

    path: Path
    message: str


@dataclass(frozen=True)
class Batch:
    """The folders of finished cases (each with report.html, explanation.json, explanation.npz and
    figures), the page that lists them, and what failed."""

    cases: tuple[Path, ...]
    failures: tuple[Failure, ...]
    index: Path

    @property
    def reports(self) -> tuple[Path, ...]:
        return tuple(case / "report.html" for case in self.cases)


def explain_files(
    model: ProtoPNet | Run | Path | str | Explainer,
    paths: Iterable[Path | str],
    folder: Path | str,
    *,
    figures: Sequence[str] = ("png",),
    progress: bool = False,
    coarse: bool = False,
    on_case: Callable[[Path, Explanation | None], None] | None = None,
    device: torch.device | str | None = None,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    autocast: torch.dtype | str | None = None,
    **options: Any,
) -> Batch:
    """Explains image files and writes a report, data and figures for each into `folder`.

    `options` are those of `explain`. A case's folder is named after its image, its content, the
    network's weights and the settings, and appears when it is complete: calling again does only what is
    missing. What is wrong for all images, such as an unknown estimator, is one error before any work. An
    image that fails does not stop the others; the result lists it. `on_case` gets each finished folder
    and its explanation (None for one that was there already). With `coarse` a report on 7 x 7 windows
    lies beside the case's folder until the case is finished. The page lists the cases of earlier calls, too.
    """
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
    asked = {name: value for name, value in options.items() if value is not None}
    settings = Settings(**{name: asked.pop(name) for name in SETTINGS if name in asked})
    settings = with_budget(with_autocast(settings, autocast, explainer.device), explainer.device)
    _check_request(explainer, settings, **asked)
    for kind in figures:
        check_format(_figure_name(kind))
    folder = Path(folder)
    cases, failures = [], []
    with Bar(progress) as bar:
        for path in [Path(path) for path in paths]:
            try:
                case = folder / _case_name(explainer, path, settings, asked)
                found = None
                if not case.is_dir():
                    report = bar.report(path.name)
                    found = _explain_file(
                        explainer, path, case, settings, figures, coarse=coarse, progress=report, **asked
                    )
            except ProtoPFaithError as error:
                logger.debug("%s: %s", path, error)  # callers tell the failures at the end
                failures.append(Failure(path, str(error)))
                continue
            cases.append(case)
            if on_case is not None:
                on_case(case, found)
    cases = list(dict.fromkeys(cases))
    there = [path.parent for path in sorted(folder.glob("[!.]*/explanation.json"))]  # by earlier calls, too
    listed = list(dict.fromkeys([*cases, *there]))
    index = write_index(folder / "index.html", listed, [(str(f.path), f.message) for f in failures])
    return Batch(tuple(cases), tuple(failures), index)


def _check_request(
    explainer: Explainer,
    settings: Settings,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    second_baseline: BaselineLike | None = None,
    sources: bool = True,
    **_: Any,
) -> None:
    """Complains about what is wrong for every image alike: one error, not one for each of them."""
    model = explainer.model
    check_different(model, find_class(model, target), find_class(model, versus))
    rehearse(settings, explainer.blank(), second_baseline)
    if sources:
        explainer.check_sources()


def _case_name(explainer: Explainer, path: Path, settings: Settings, asked: dict[str, Any]) -> str:
    """Changes with the image, the weights and whatever changes the explanation."""
    if not path.is_file():
        raise ProtoPFaithError(f"There is no image at {path}; check the path.")
    rest = str(sorted((name, plain(value)) for name, value in asked.items()))
    key = settings.key(explainer.weights_hash, sha256(path), rest)
    stem = re.sub(r"[^\w.-]+", "_", path.stem)[:60] or "image"
    return f"{stem}-{key[:8]}"


def _explain_file(
    explainer: Explainer,
    path: Path,
    case: Path,
    settings: Settings,
    figures: Sequence[str],
    *,
    coarse: bool,
    **options: Any,
) -> Explanation:
    early = case.with_name(f"{case.name}-coarse.html")
    on_coarse = (lambda quick: _write_early(quick, early)) if coarse else None
    explanation = explain_with(explainer, path, settings, on_coarse=on_coarse, **options)
    with atomic(case) as partial:
        write_case(explanation, partial, figures)
    early.unlink(missing_ok=True)
    asked = explanation.precision_asked
    if asked is not None and not explanation.reached:
        logger.warning(
            "%s: the precision of %s was not reached; allow more evaluations.", path, percent(asked)
        )
    return explanation


def _write_early(quick: Explanation, path: Path) -> None:
    quick.report(path)
    logger.info("A first, coarse answer: %s", path)


def write_case(explanation: Explanation, folder: Path, figures: Sequence[str] = ("png",)) -> None:
    """Report, data and figures of one explanation."""
    from protopfaith.show.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    explanation.save(folder / "explanation")
    for kind in figures:
        figure(explanation, folder / _figure_name(kind))
    write_report(explanation, folder / "report.html")


def _figure_name(kind: str) -> str:
    return f"figure.{kind.lstrip('.')}"
