"""The course of a training run as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.training.family import trainer_named
from protopfaith.training.progress import TITLES
from protopfaith.training.run import Run
from protopfaith.writing import atomic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = {"pretraining": "#dddddd", "warmup": "#fee8c8", "joint": "#deebf7", "classifier": "#e5f5e0"}


def curves_figure(metrics: pd.DataFrame, last_part: str = "F") -> Figure:
    """Balanced accuracies above, losses below, over the epochs of `Run.metrics()`; stages are shaded, that of
    what learns after projection by its name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained", dpi=130)
    above, below = figure.subplots(2, 1, sharex=True)
    epochs = metrics.epoch + 1
    for axes in (above, below):
        _shade(axes, metrics, TITLES | {"classifier": f"projected ({last_part})"})
        axes.spines[["top", "right"]].set_visible(False)
    above.plot(epochs, metrics.train_balanced_accuracy, color="#d95f02", label="training (augmented)")
    validation = metrics.validation_balanced_accuracy
    above.plot(epochs, validation, ".-", color="#0b4fa8", label="validation")
    above.set(ylabel="balanced accuracy", ylim=(0, 1.02))
    for name, color in (("loss", "#444444"), ("cross_entropy", "#1b9e77")):
        below.plot(epochs, metrics[name], color=color, label=name.replace("_", " "))
    below.set(xlabel="epoch", ylabel="loss", yscale="symlog")
    figure.legend(handles=below.lines, loc="outside right lower", frameon=False, fontsize=8)
    figure.legend(*above.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    return figure


def save_curves(run: Run) -> None:
    """`curves.png` in the run's folder."""
    last_part = trainer_named(run.recipe().model.family).last_part
    with atomic(run.folder / "curves.png") as partial:
        curves_figure(run.metrics(), last_part).savefig(partial, format="png")


def _shade(axes: Axes, metrics: pd.DataFrame, names: dict[str, str]) -> None:
    """Each stage as a band; each kind of stage named once."""
    stretches = (metrics.stage != metrics.stage.shift()).cumsum()
    named: set[str] = set()
    for _, rows in metrics.groupby(stretches):
        stage = str(rows.stage.iloc[0])
        label = names.get(stage, stage) if stage not in named else None
        named.add(stage)
        start, end = rows.epoch.iloc[0] + 0.5, rows.epoch.iloc[-1] + 1.5
        axes.axvspan(start, end, color=SHADES.get(stage, "#ffffff"), linewidth=0, zorder=0, label=label)
