"""Many images in one call: each case in a folder of its own, finished ones are not done again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from protopfaith import arguments
from protopfaith.annotations import check_arguments
from protopfaith.anonymous import public_names, without_path, write_key
from protopfaith.arguments import instance, named
from protopfaith.crashes import unexpected
from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.data.dicom_header import find_study
from protopfaith.data.frames import split_frame
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.anonymous import without_source_names
from protopfaith.explanation.case_files import (
    REPORT,
    check_figures,
    complete_case,
    write_case,
    write_cases_page,
)
from protopfaith.explanation.case_names import case_name
from protopfaith.explanation.cost import Overall, cost_sentence, expected_cost, source_games
from protopfaith.explanation.decision import choose_output
from protopfaith.explanation.decomposition import check_different, find_class
from protopfaith.explanation.explainer import Explainable, Explainer, as_explainer
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import check_game
from protopfaith.explanation.picture import MaskLike, open_mask
from protopfaith.explanation.saving import load
from protopfaith.explanation.settings import Settings
from protopfaith.files import is_file, is_folder
from protopfaith.progress import Bar
from protopfaith.writing import atomic, remove_leftovers

logger = logging.getLogger("protopfaith")


@dataclass(frozen=True)
class Failure:
    """An image that could not be explained, and why.

    Args:
        path: of the image; its number where results are anonymous
        message: why, in one sentence

    >>> Failure(Path("cat.png"), "The file is empty.").message
    'The file is empty.'
    """

    path: Path
    message: str


@dataclass(frozen=True, repr=False)
class Batch:
    """What came of many images: a folder for each case (with report.html, explanation.json, explanation.npz
    and figures), a page that lists them, and what failed.

    Args:
        cases: folders of finished cases
        failures: images that could not be explained
        index: the page that lists all cases

    >>> from tempfile import mkdtemp
    >>> quick = Settings(players=16, budget=64, sources=False)
    >>> files = ["bird.png", "missing.png"]
    >>> batch = explain_files("runs/birds", files, mkdtemp(), settings=quick, figures=())
    >>> len(batch.cases), len(batch.failures), batch.reports[0].name
    (1, 1, 'report.html')
    """

    cases: tuple[Path, ...]
    failures: tuple[Failure, ...]
    index: Path

    @property
    def reports(self) -> tuple[Path, ...]:
        return tuple(case / REPORT for case in self.cases)

    def __repr__(self) -> str:
        return f"Batch({len(self.cases)} cases, {len(self.failures)} failures, index={str(self.index)!r})"


def explain_files(
    model: Explainable | Explainer,
    paths: Iterable[Path | str],
    folder: Path | str,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    settings: Settings | None = None,
    figures: Sequence[str] = ("png",),
    coarse: bool = False,
    mask: MaskLike | None = None,
    progress: bool = False,
    on_case: Callable[[Path, Explanation | None], None] | None = None,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    device: torch.device | str | None = None,
    anonymous: bool = False,
    dicom: bool = False,
    **keywords: Any,
) -> Batch:
    """Explains image files and writes a report, data and figures for each into `folder`.

    A case's folder is named after its image, its content, the network's weights and the settings, and appears
    when it is complete: calling again does only what is missing. What is wrong for all images, such as an
    unknown estimator, is one error before any work. An image that fails does not stop the others; the result
    lists it. The page lists the cases of earlier calls, too.

    Args:
        model: a run, its folder, a network, or an `Explainer`.
        paths: the image files.
        folder: where to write.
        target: the class to explain, by name or number; the predicted one of each image by default.
        versus: another class to compare it with.
        settings: how to compute; `keywords` are fields of it.
        figures: formats of the figures, such as png, pdf or svg.
        coarse: a report on 7 x 7 windows lies beside the case's folder until the case is finished.
        mask: where the object is in the images, see `Explainer.explain`.
        progress: whether to say what is ahead and to show a bar.
        on_case: gets each finished folder and its explanation (None for one that was there already).
        preprocessing: how images are prepared for a network that comes without a run.
        images: the training images of such a network.
        device: where to compute.
        anonymous: numbers instead of file names, also of source images; which is which stays behind in
            `FOLDER-key.csv` beside the folder.
        dicom: also write the map as DICOM files of the image's study (`explanation.dcm`, and the decided
            regions as a segmentation, `regions.dcm`); only for images that came as DICOM files.
        keywords: fields of `Settings`, in the place of those of `settings`.

    >>> from tempfile import mkdtemp
    >>> batch = explain_files("runs/birds", ["bird.png"], mkdtemp(), players=16, budget=64, figures=())
    >>> sorted(path.name for path in batch.cases[0].iterdir())
    ['explanation.json', 'explanation.npz', 'report.html']
    """
    check_arguments(explain_files, locals())
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
    stated = Settings.of(settings, **keywords)
    settings = stated.on(explainer.device, explainer.size)
    instance(folder, (str, Path), "Where to write", "a folder")
    request = _Request(
        explainer,
        Path(folder),
        target,
        versus,
        settings,
        tuple(figures),
        coarse,
        mask,
        anonymous,
        dicom,
        warns_if_imprecise=stated.precision is not None,
    )
    request.check()
    remove_leftovers(request.folder)
    files = [arguments.path(path, "An image") for path in paths]
    if anonymous:
        write_key(request.folder.with_name(f"{request.folder.name}-key.csv"), files)
    request.names.update(zip(files, public_names(files, anonymous=anonymous), strict=True))
    cases: dict[Path, None] = {}  # in order, each once
    failures = []
    with Bar(progress) as bar:
        overall = request.announce(files, bar)
        for path in files:
            try:
                case, found = request.answer(path, overall)
            except ProtoPFaithError as error:
                failures.append(request.failure(path, str(error)))
                continue
            except Exception as error:  # one bad image does not spoil the others
                failures.append(request.failure(path, unexpected(error, request.log_folder)))
                continue
            cases[case] = None
            if on_case is not None:
                on_case(case, found)
    told = [(request.names.get(one.path, named(one.path.name)), one.message) for one in failures]
    index = write_cases_page(request.folder, list(cases), told)
    return Batch(tuple(cases), tuple(failures), index)


@dataclass(frozen=True)
class _Request:
    """What is asked about every image alike.

    Args:
        explainer: the network
        folder: where results go
        target: the class to explain; the predicted one by default
        versus: another class to compare it with
        settings: how to compute
        figures: formats in which figures are written
        coarse: whether a coarse map is made first
        mask: where the object is, for all images
        anonymous: numbers instead of names of files
        dicom: whether the map is written as DICOM files, too
        warns_if_imprecise: whether to say which images did not reach the precision
        names: what the files are called in results
    """

    explainer: Explainer
    folder: Path
    target: str | int | None
    versus: str | int | None
    settings: Settings
    figures: tuple[str, ...]
    coarse: bool
    mask: MaskLike | None
    anonymous: bool = False
    dicom: bool = False
    warns_if_imprecise: bool = False
    names: dict[Path, str] = field(default_factory=dict)

    def check(self) -> None:
        """Raises if something is wrong for every image alike: one error, not one for each of them."""
        model = self.explainer.model
        choose_output(model, self.settings, self.versus)
        check_different(model, find_class(model, self.target), find_class(model, self.versus))
        check_game(self.settings, self.explainer.blank())
        if self.settings.sources:
            self.explainer.sources.check()
        if self.dicom:
            self._check_dicom()
        check_figures(self.figures)
        if self.mask is not None:
            open_mask(self.mask, self.explainer.size)

    def _check_dicom(self) -> None:
        from protopfaith.show.dicom import check_dicom

        check_dicom()
        if self.anonymous:
            raise ProtoPFaithError(
                "A DICOM file names the study and the patient that it belongs to; leave --dicom or "
                "--anonymous out."
            )

    def announce(self, paths: Sequence[Path], bar: Bar) -> Overall:
        """Says what is ahead, and counts it."""
        model, blank = self.explainer.model, self.explainer.blank()
        count = sum(map(self._is_new, paths))
        games = 0.0
        if self.settings.sources and count:
            games = source_games(model, self.explainer.sources, self.settings, count)
        each = expected_cost(self.settings, blank, coarse=self.coarse, games=games)
        if bar.shown and count:
            sentence = cost_sentence(model, blank, each, count)
            if sentence is not None:
                bar.say(sentence)
        return Overall(bar, count, each)

    @property
    def log_folder(self) -> Path:
        """Where tracebacks go, which have paths in them: with anonymous results beside them, as the key."""
        return self.folder.parent if self.anonymous else self.folder

    def failure(self, path: Path, message: str) -> Failure:
        """What went wrong with an image; of an anonymous one without its name."""
        if not self.anonymous:
            return Failure(path, message)
        name = self.names[path]
        message = without_path(message, path, name)
        if isinstance(self.mask, str | Path):
            message = without_path(message, Path(self.mask), "mask")
        return Failure(Path(name), message)

    def answer(self, path: Path, overall: Overall) -> tuple[Path, Explanation | None]:
        """The case's folder, and its explanation unless it was there already."""
        case = self._case(path)
        study = path if self.dicom else None
        if study is not None:
            find_study(split_frame(study)[0])  # before the work
        damaged = is_folder(case)
        kept = self._kept(case) if damaged else None
        if kept is not None:
            complete_case(kept, case, self.figures, dicom=study)
            return case, None
        overall.start(self.names[path] if self.anonymous else path.name)
        early = case.with_name(f"{case.name}-coarse.html")
        explanation = self._explained(path, early, overall)
        self._write(explanation, case, study, damaged=damaged)
        early.unlink(missing_ok=True)
        if self.warns_if_imprecise and not explanation.reached:
            _warn_of_imprecision(explanation, self.names[path] if self.anonymous else str(path))
        return case, explanation

    def _explained(self, path: Path, early: Path, overall: Overall) -> Explanation:
        """The explanation of an image, as it may be given away; a coarse one goes to `early`."""
        found = self.explainer.explain(
            path,
            target=self.target,
            versus=self.versus,
            settings=self.settings,
            name=self.names.get(path, ""),
            true_class=None if self.anonymous else self._true_class(path),
            mask=self.mask,
            on_coarse=(lambda quick: _write_early(quick, early)) if self.coarse else None,
            progress=overall.report,
        )
        return without_source_names(found) if self.anonymous else found

    def _write(self, explanation: Explanation, case: Path, study: Path | None, *, damaged: bool) -> None:
        """A case appears whole; a damaged one is replaced file by file, since its folder may hold files that
        are not ours."""
        try:
            with nullcontext(case) if damaged else atomic(case) as partial:
                write_case(explanation, partial, self.figures, dicom=study)
        except ProtoPFaithError:
            if damaged or not is_folder(case):  # else another process was faster with the same
                raise

    def _kept(self, case: Path) -> Explanation | None:
        """The explanation of a finished case; None where its data are damaged or gone."""
        try:
            return load(case / "explanation")
        except ProtoPFaithError as error:
            logger.warning("%s is damaged and explained anew: %s", case, error)
            return None

    def _is_new(self, path: Path) -> bool:
        try:
            return not is_file(self._case(path) / "explanation.json")
        except ProtoPFaithError:  # told when it is its turn
            return False

    def _case(self, path: Path) -> Path:
        """Its folder, of the same name whenever the same is asked: so a finished case is found again."""
        name = case_name(
            self.explainer,
            path,
            self.settings,
            target=self.target,
            versus=self.versus,
            mask=self.mask,
            name=self.names.get(path, path.name) if self.anonymous else None,
        )
        return self.folder / name

    def _true_class(self, path: Path) -> str | None:
        """A parent folder that is named like a class says what is in the image."""
        name = path.resolve().parent.name
        return name if name in self.explainer.model.class_names else None


def _write_early(quick: Explanation, path: Path) -> None:
    quick.report(path)
    logger.info("A first, coarse answer: %s", path)


def _warn_of_imprecision(explanation: Explanation, path: str) -> None:
    from protopfaith.show.wording.numbers import asked
    from protopfaith.show.wording.sharpness import strength

    logger.warning(
        "%s: the precision %s was not reached: how strongly regions speak is %s with %s evaluations; "
        "allow more (--budget), or take larger regions (--players).",
        path,
        asked(explanation.precision_asked or 0),
        strength(explanation.precision),
        f"{explanation.evaluations:,}",
    )
