"""`protopfaith evaluate`: how good is the model?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protopfaith.cli.app import NamesInHelp, app, console, fail_for, note, say
from protopfaith.cli.checks import check_file, check_root, check_run
from protopfaith.cli.data import choose_split
from protopfaith.cli.names import check_elsewhere, needs_root
from protopfaith.cli.options import BatchSize, Device, RunFolder, Seed, Split
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import check_plain, existing_folder

if TYPE_CHECKING:
    from protopfaith.data import ImageSet
    from protopfaith.evaluation.external_findings import ExternalFindings
    from protopfaith.evaluation.external_results import ExternalEvaluation
    from protopfaith.evaluation.metrics.classification import Classification
    from protopfaith.training import Run


GROUPS_OF_FINDINGS = (
    "Groups are given for a folder of classes; a CSV file of findings has them in a column named patient or "
    "group."
)
ONLY_EXTERNAL = "goes with images from elsewhere; name these with --data, or leave it out."


Data = Annotated[
    str | None,
    typer.Option(
        callback=check_elsewhere,
        help="Images from elsewhere, compared with the split: a folder with one folder per class, a CSV "
        "file with the columns file and label (also patient, sex, age, site, device; one column for each "
        "of several findings instead of label), or one of: {DATASETS}.",
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="The folder of the images, if not the one the recipe names; with --data that of the images "
        "from elsewhere."
    ),
]
OwnRoot = Annotated[
    Path | None,
    typer.Option(help="With --data: the folder of the run's own images, if they have moved."),
]
Groups = Annotated[
    Path | None,
    typer.Option(help="For a folder from elsewhere: a CSV file of image and patient, or names."),
]
Subgroups = Annotated[
    str | None,
    typer.Option(help="Columns, separated by commas. Default: sex, age, site and device where known."),
]
Compare = Annotated[
    bool, typer.Option("--compare/--no-compare", help="Compare with the run's own images, or not.")
]


@app.command(cls=NamesInHelp)
def evaluate(
    folder: RunFolder,
    split: Split = "test",
    data: Data = None,
    root: Root = None,
    own_root: OwnRoot = None,
    groups: Groups = None,
    subgroups: Subgroups = None,
    compare: Compare = True,
    resamples: Annotated[int, typer.Option(min=10, max=100_000, help="Sets drawn for intervals.")] = 1000,
    seed: Seed = 0,
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Measure balanced accuracy, sensitivity, specificity, AUROC, calibration, distinct prototypes.

    With --data, the same on images from elsewhere, with intervals and subgroups, next to the run's own.
    """
    if data is None:
        external = {"--groups": groups, "--subgroups": subgroups, "--own-root": own_root}
        for option, given in {**external, "--no-compare": None if compare else compare}.items():
            if given is not None:
                raise ProtoPFaithError(f"{option} {ONLY_EXTERNAL}")
    elif needs_root(data):
        existing_folder(root, data)
    check_run(folder, root)
    if data is None:
        check_plain(folder / "reference.json")  # which is written at the end
    check_root(own_root)
    if str(groups) != "names":
        check_file(groups, "CSV file of image and patient")
    note(f"Loading {folder} ...")
    from protopfaith.evaluation.metrics.classification import Classification
    from protopfaith.training import Run

    run = Run(folder, root if data is None else own_root)
    if data is None:
        if run.outcome() == "several":
            print_findings(run, split, device, batch_size, resamples, seed)
        else:
            print_classes(run, split, device, batch_size)
        print_hidden(run, split, device, batch_size)
        print_prototypes(run)
        say(f"Written to {run.folder / 'evaluation'}")
        return
    found = judge_external(
        run,
        data,
        root,
        groups,
        split if compare else None,
        device,
        columns=columns_of(subgroups),
        resamples=resamples,
        seed=seed,
        batch_size=batch_size,
    )
    if isinstance(found.result, Classification):
        console.print(found.result.table())
        say(str(found.result.calibration))
    console.print(found.table())
    for sentence in found.notes:
        say(sentence)
    say(f"Written to {found.save(run.folder / 'evaluation')}")
    fail_for(found.problems)


def columns_of(text: str | None) -> list[str] | None:
    """Names of columns, as headings are read: in lower case."""
    if text is None:
        return None
    names = [name.strip().lower() for name in text.split(",")]
    if not all(names):
        raise ProtoPFaithError(f"Subgroups are columns with commas between, such as sex,age, not {text!r}.")
    return names


def judge_external(
    run: Run,
    data: str,
    root: Path | None,
    groups: Path | None,
    split: str | None,
    device: str,
    **options: Any,
) -> ExternalEvaluation | ExternalFindings:
    """Judges the run on images from elsewhere, and on a split of its own unless that is None."""
    from protopfaith.data.external import load_external
    from protopfaith.devices import choose_device
    from protopfaith.evaluation import evaluate_external, evaluate_external_findings
    from protopfaith.training.reference import reference_of, temperature_of

    several = run.outcome() == "several"
    if several and groups is not None:
        raise ProtoPFaithError(GROUPS_OF_FINDINGS)
    model, preprocessing = run.model(choose_device(device)), run.preprocessing()
    labels: dict[str, Any] = {"findings": model.class_names} if several else {"groups": groups}
    external = load_external(data, preprocessing, root=root, **labels)
    own = own_sets(run)
    options["internal"] = choose_split(own, split) if split is not None and own else None
    options["seen"] = {r.sha256 for name in ("train", "validation") if own for r in own[name].records}
    if several:
        reference = reference_of(run, model)
        return evaluate_external_findings(model, preprocessing, external, reference, **options)
    temperature = temperature_of(run, model)
    return evaluate_external(model, preprocessing, external, temperature=temperature, **options)


def print_classes(run: Run, split: str, device: str, batch_size: int) -> None:
    """Judges the classes of a split of the run."""
    result = evaluate_run(run, split, device, batch_size)
    console.print(result.table())
    say(str(result.calibration))
    for line in (run.comparison(), *run.shortfall()):
        say(line)


def own_sets(run: Run) -> dict[str, ImageSet]:
    """The run's own images; nothing, with a word, where they are not to be had."""
    try:
        return run.data().sets()
    except ProtoPFaithError as error:
        note(f"There is no comparison with the run's own images, which cannot be loaded. {error}")
        return {}


def evaluate_run(run: Run, split: str, device: str, batch_size: int) -> Classification:
    """Classifies a split of the run and writes the results into its folder."""
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import classify_set, write_classification
    from protopfaith.training.reference import temperature_of
    from protopfaith.training.reference_measurement import keep_reference

    data, model = run.data(), run.model(choose_device(device))
    images = choose_split(data.sets(), split)
    keep_reference(run, data, model)
    temperature = temperature_of(run, model)
    result = classify_set(model, images, run.preprocessing(), batch_size, temperature)
    write_classification(run.folder / "evaluation", split, result)
    return result


def print_findings(run: Run, split: str, device: str, batch_size: int, resamples: int, seed: int) -> None:
    """Judges the findings of a split of the run and writes the results into its folder."""
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.findings import evaluate_findings, write_findings
    from protopfaith.training.reference import reference_of
    from protopfaith.training.reference_measurement import keep_reference

    data, model = run.data(), run.model(choose_device(device))
    images = choose_split(data.sets(), split)
    keep_reference(run, data, model)
    result = evaluate_findings(
        model,
        images,
        run.preprocessing(),
        reference_of(run, model),
        batch_size=batch_size,
        resamples=resamples,
        seed=seed,
    )
    write_findings(run.folder / "evaluation", split, result)
    console.print(result.table())
    say("Thresholds were chosen on validation images, for the largest sum of sensitivity and specificity")
    say("Intervals are of 95%, from drawing whole patients where they are known")


def print_hidden(run: Run, split: str, device: str, batch_size: int) -> None:
    """Says how the network does where parts of images are hidden, as in coalitions."""
    from protopfaith.devices import choose_device
    from protopfaith.training.hidden import hidden_accuracies, seen_in_training, told

    images, model = choose_split(run.data().sets(), split), run.model(choose_device(device))
    found = hidden_accuracies(model, images, run.preprocessing(), batch_size=batch_size)
    trained = seen_in_training(run.recipe())
    say(f"{told(found)}{'' if trained else ' (it never saw such images in training)'}")


def print_prototypes(run: Run) -> None:
    """Says how many prototypes are distinct, and how far apart they are."""
    from protopfaith.network import distinct_prototypes, prototype_spread

    model = run.model()
    distinct = distinct_prototypes(model)
    many = f"{distinct.distinct} of {distinct.total} prototypes are distinct"
    if not any(distinct.per_class):  # they belong to no class
        say(many)
        return
    least, most = min(distinct.per_class), max(distinct.per_class)
    say(f"{many}, {least} in every class" if least == most else f"{many}, {least} to {most} in a class")
    within, between = prototype_spread(model)
    say(f"Their median squared distance is {within:.3g} within a class and {between:.3g} between classes")
