"""Many images in one call: each case in a folder of its own, finished ones are not done again."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.contribution import find_class
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.local import as_explainer, explain
from protopfaith.explanation.progress import Bar
from protopfaith.explanation.report.index import write_index
from protopfaith.explanation.result import Explanation
from protopfaith.explanation.settings import Settings
from protopfaith.files import atomic, sha256
from protopfaith.network import ProtoPNet
from protopfaith.training import Run

logger = logging.getLogger("protopfaith")
SETTINGS = ("players", "precision", "budget", "estimator", "baseline", "seed", "options", "autocast")


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
    device: Any = None,
    **options: Any,
) -> Batch:
    """Explains image files and writes a report, data and figures for each into ``folder``.

    ``options`` are those of :func:`explain`. A case's folder is named after its image, its content, the
    network's weights and the settings, and appears when it is complete: calling again does only what is
    missing. An image that fails does not stop the others; the result lists it. ``on_case`` gets each
    finished folder and its explanation (None for one that was there already). With ``coarse`` a report on
    7 x 7 windows lies beside the case's folder until the case is finished. The page lists the cases of
    earlier calls, too.
    """
    explainer = as_explainer(model, device=device)
    for name in (options.get("target"), options.get("versus")):
        find_class(explainer.model, name)  # a misspelt class is one error, not one for every image
    options["autocast"] = choose_autocast(options.get("autocast"), explainer.device)  # part of the key
    folder = Path(folder)
    cases, failures = [], []
    with Bar(progress) as bar:
        for path in [Path(path) for path in paths]:
            try:
                case, found = _explain_file(
                    explainer, path, folder, figures=figures, bar=bar, coarse=coarse, options=options
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


def _explain_file(
    explainer: Explainer,
    path: Path,
    folder: Path,
    *,
    figures: Sequence[str],
    bar: Bar,
    coarse: bool,
    options: dict[str, Any],
) -> tuple[Path, Explanation | None]:
    if not path.is_file():
        raise ProtoPFaithError(f"There is no image at {path}; check the path.")
    case = folder / f"{_plain(path.stem)}-{_key(explainer, path, options)}"
    if case.is_dir():
        return case, None
    early = case.with_name(f"{case.name}-coarse.html")
    on_coarse = (lambda quick: _write_early(quick, early)) if coarse else None
    explanation = explain(explainer, path, progress=bar.report(path.name), on_coarse=on_coarse, **options)
    with atomic(case) as partial:
        write_case(explanation, partial, figures)
    early.unlink(missing_ok=True)
    return case, explanation


def _write_early(quick: Explanation, path: Path) -> None:
    quick.report(path)
    logger.info("A first, coarse answer: %s", path)


def write_case(explanation: Explanation, folder: Path, figures: Sequence[str] = ("png",)) -> None:
    """Report, data and figures of one explanation."""
    from protopfaith.explanation.figures import figure
    from protopfaith.explanation.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    explanation.save(folder / "explanation")
    for kind in figures:
        figure(explanation, folder / f"figure.{kind.lstrip('.')}")
    write_report(explanation, folder / "report.html")


def _key(explainer: Explainer, path: Path, options: dict[str, Any]) -> str:
    """Changes with the image, the weights and whatever changes the explanation."""
    settings = Settings(**{k: v for k, v in options.items() if k in SETTINGS and v is not None})
    rest = sorted((k, str(v)) for k, v in options.items() if k not in (*SETTINGS, "batch_size", "memory"))
    key = settings.key(explainer.weights_hash, sha256(path), str(rest))
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:60] or "image"
