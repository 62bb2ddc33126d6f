"""Curves and maps as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.evaluation.results import ExplainerResult, Faithfulness
from protopfaith.show.colors import diverging, overlay, rgb
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {
    "zero": "removed to zero, same regions",
    "own": "removed to zero, own units",
    "blur": "removed to a blur, same regions",
    "insertion": "put back onto zero, same regions",
}
# Kin have one hue: sampling blue, moments green, gradients orange and pink, ProtoPNet purple, chance gray.
STYLES: Mapping[str, tuple[str, str]] = {
    "ours": ("#0b4fa8", "-"),
    "owen": ("#5b9bd5", "--"),
    "moment_path": ("#1b9e77", "-"),
    "dasp": ("#1b9e77", "--"),
    "integrated_gradients": ("#d95f02", "-"),
    "gradient_shap": ("#d95f02", "--"),
    "saliency": ("#e7298a", "-"),
    "smoothgrad": ("#e7298a", "--"),
    "protopnet": ("#7b3294", "-"),
    "protopnet_crop": ("#7b3294", "--"),
    "random": ("#888888", ":"),
}
MOST_EXAMPLES = 5


def curves_figure(found: Faithfulness) -> Figure:
    """The mean distance over the share of pixels removed, for every explainer and kind of removal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained", dpi=130)
    panels = figure.subplots(2, 2)
    for axes, (kind, title) in zip(panels.flat, KINDS.items(), strict=True):
        for result in found.results:
            color, dashes = STYLES.get(result.name, ("#444444", "-."))
            mean = result.curves[kind].mean(0)
            share = torch.linspace(0, 100, len(mean))
            width = 2.6 if result.name == "ours" else 1.4
            order = 3 if result.name == "ours" else 2
            axes.plot(
                share, mean, dashes, color=color, linewidth=width, label=_label(found, result), zorder=order
            )
        axes.set_title(f"Pixels {title}", fontsize=10, loc="left")
        axes.set(xlabel="% of pixels", ylabel="mean distance s", xlim=(0, 100))
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if kind != "insertion":
            axes.axvspan(0, 20, color="#000000", alpha=0.04, linewidth=0)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    return without_math(figure)


def scores_figure(found: Faithfulness) -> Figure:
    """AOPC up to 20% and agreement with the truth as bars, with standard errors over prototypes."""
    from matplotlib.figure import Figure

    columns = [("aopc_20", "AOPC up to 20% (more negative is better)")]
    if found.truth is not None:
        columns.append(("pearson", "Pearson correlation with true Shapley values"))
    rows = len(found.results)
    figure = Figure(figsize=(11, 1.3 + 0.3 * rows), layout="constrained", dpi=130)
    panels = np.atleast_1d(figure.subplots(1, len(columns), sharey=True))
    places = np.arange(rows)[::-1]
    for axes, (name, title) in zip(panels, columns, strict=True):
        values = [result.per_prototype()[name] for result in found.results]
        values = [v[~v.isnan()] for v in values]
        means = [float(v.mean()) for v in values]
        errors = [float(v.std(correction=0)) / max(len(v) - 1, 1) ** 0.5 for v in values]
        colors = [STYLES.get(result.name, ("#444444", ""))[0] for result in found.results]
        axes.barh(places, means, xerr=errors, color=colors, height=0.65, error_kw={"linewidth": 1})
        axes.set_title(title, fontsize=10, loc="left")
        axes.axvline(0, color="black", linewidth=0.8)
        axes.grid(axis="x", alpha=0.25)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        if name == "pearson":
            axes.set_xlim(right=1)
        else:
            axes.invert_xaxis()
    panels[0].set_yticks(places, [_label(found, result) for result in found.results])
    return without_math(figure)


def examples_figure(
    pixels: Sequence[Tensor], maps: Mapping[str, Tensor], captions: Sequence[str], most: int = MOST_EXAMPLES
) -> Figure:
    """Source images (uint8 C x H x W) beside all maps (n, H, W), in the colors of the report.

    Every map has a scale of its own, up to which its strongest 0.5% are cut off.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    rows, columns = min(len(pixels), most), 1 + len(maps)
    figure = Figure(figsize=(1.25 * columns, 1.42 * rows + 0.9), layout="constrained", dpi=130)
    panels = figure.subplots(rows, columns, squeeze=False)
    for row in range(rows):
        picture = rgb(pixels[row])
        _show(panels[row, 0], picture, "source image" if row == 0 else "")
        panels[row, 0].set_ylabel(captions[row], fontsize=6)
        for axes, (name, values) in zip(panels[row, 1:], maps.items(), strict=True):
            one = values[row].numpy()
            heat = overlay(one, max(float(np.quantile(np.abs(one), 0.995)), 1e-30))
            opacity = heat[..., 3:]
            title = name.replace("_", "\n") if row == 0 else ""
            _show(axes, picture * (1 - opacity) + heat[..., :3] * opacity, title)
    colors = ScalarMappable(Normalize(-1, 1), diverging())
    bar = figure.colorbar(
        colors, ax=panels, orientation="horizontal", fraction=0.03, aspect=50, ticks=[-1, 0, 1]
    )
    bar.ax.set_xticklabels(["less similar", "0", "more similar"], fontsize=8)
    bar.set_label("the scale of each map ends at its own largest value", fontsize=8)
    return without_math(figure)


def _label(found: Faithfulness, result: ExplainerResult) -> str:
    n = len(result.prototypes)
    return result.name if n == len(found.prototypes) else f"{result.name} (n={n})"


def _show(axes: Any, picture: np.ndarray, title: str) -> None:
    axes.imshow(picture)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title, fontsize=7)
    for spine in axes.spines.values():
        spine.set_visible(False)
