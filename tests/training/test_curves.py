"""The picture of a run shows every epoch and names every stage."""

from protopfaith.training.curves import curves_figure
from protopfaith.training.progress import TITLES


def test_every_epoch_and_stage_is_shown(trained):
    table = trained.metrics()
    above, below = curves_figure(table).axes
    lines = {line.get_label(): line for line in above.lines}
    assert lines["training (augmented)"].get_ydata().tolist() == table.train_balanced_accuracy.tolist()
    assert lines["validation"].get_xdata().tolist() == (table.epoch + 1).tolist()
    assert set(above.get_legend_handles_labels()[1]) >= {
        TITLES[name] for name in ("pretraining", "warmup", "joint")
    }
    assert "projected (leaves)" in curves_figure(table, "leaves").axes[0].get_legend_handles_labels()[1]
    assert {line.get_label() for line in below.lines} == {"loss", "cross entropy"}
    # stages touch each other and cover all epochs, in two cycles of joint and classifier
    edges = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in above.patches]
    assert [start for start, _ in edges[1:]] == [end for _, end in edges[:-1]]
    assert (edges[0][0], edges[-1][1]) == (0.5, len(table) + 0.5)
    assert len(edges) == 6
