import io
import re
from dataclasses import replace

from rich.console import Console

from protopfaith.data import load_data
from protopfaith.training.metrics import EpochMetrics
from protopfaith.training.progress import TrainingProgress, describe_data, title
from protopfaith.training.schedule import Stage

STAGE = Stage("classifier", epochs=2, cycle=3)
METRICS = EpochMetrics(
    epoch=41,
    stage="classifier",
    cycle=3,
    stage_epoch=1,
    learning_rate=0.1,
    loss=0.25,
    cross_entropy=0.25,
    cluster=1.5,
    separation=7.5,
    train_balanced_accuracy=0.625,
    validation_balanced_accuracy=0.875,
    projected=True,
    distinct_prototypes=11,
    prototypes=12,
    seconds=1.0,
)


def shown(*metrics: EpochMetrics, enabled: bool = True) -> list[str]:
    """What a program without a terminal sees: lines, no bar."""
    output = io.StringIO()
    with TrainingProgress(enabled, 4, Console(file=output, width=20)) as progress:
        progress.begin()
        progress.stage(STAGE)
        for row in metrics:
            progress.advance()
            progress.epoch(STAGE, row)
    return output.getvalue().splitlines()


def test_one_line_for_a_finished_stage_with_all_that_counts():
    (line,) = [line for line in shown(replace(METRICS, stage_epoch=0), METRICS) if line]
    for words in (
        "cycle 3 classifier (F)",
        "epoch   42",
        "loss 0.250, cluster 1.500 separation 7.500",
        "balanced accuracy 0.875 (validation)",
        "11 of 12 prototypes distinct",
    ):
        assert words in line


def test_what_was_not_measured_is_left_out():
    early = replace(METRICS, cluster=None, validation_balanced_accuracy=None, distinct_prototypes=None)
    (line,) = [line for line in shown(early) if line]
    assert "balanced accuracy 0.625 (training)" in line
    assert "cluster" not in line
    assert "distinct" not in line


def test_the_last_stage_of_a_tree_is_about_its_leaves():
    assert title(STAGE) == "cycle 3 classifier (F)"
    assert title(STAGE, "leaves") == "cycle 3 leaves"


def test_silence_when_asked_for():
    assert not any(shown(METRICS, enabled=False))


def test_in_a_narrow_terminal_bar_and_times_stay_whole():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    progress = TrainingProgress(True, 4, console)
    progress.begin()
    progress.stage(STAGE)
    progress.advance()
    progress.epoch(STAGE, replace(METRICS, stage_epoch=0))
    with console.capture() as captured:
        console.print(progress.bar._progress.get_renderable(), no_wrap=False)
    text = re.sub(r"\x1b\[[0-9;]*m", "", captured.get())
    first = text.splitlines()[0]
    assert first.startswith("cycle 3 classifier (F) " + "━" * 3)
    assert re.search(r"-:--:-- -:--:--|0:00:00 ", first)
    assert "…" not in text
    words = " ".join(line[first.index("loss") :].strip() for line in text.splitlines())
    assert "loss 0.250, cluster 1.500 separation 7.500" in words
    assert "11 of 12 prototypes distinct" in words


def test_what_it_is_trained_on_is_counted():
    """Unequal classes are seen, and findings are no classes."""
    birds = load_data("birds", size=16, train=20, validation=8, test=16)
    few, many = sorted(birds.train.labels.bincount().tolist())[:: len(birds.classes) - 1]
    assert f"20 images of 8 classes ({few} to {many} of each)" in describe_data(birds)
    equal = load_data("birds", size=16, train=16, validation=8, test=8)
    assert "16 images of 8 classes (2 of each) to train on, 8 to validate, 8 to test" in describe_data(equal)
    several = load_data("birds_multilabel", size=16, train=40, validation=8, test=32)
    assert f"40 images with {len(several.classes)} findings" in describe_data(several)
