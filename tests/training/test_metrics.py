import pandas as pd
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

from protopfaith.errors import ProtoPFaithError
from protopfaith.training.metrics import EpochMetrics, MetricsFile, add_to_confusion, balanced_accuracy


def row(epoch: int) -> EpochMetrics:
    return EpochMetrics(
        epoch=epoch,
        stage="joint",
        cycle=1,
        stage_epoch=epoch,
        learning_rate=0.1,
        loss=1.5,
        cross_entropy=1.0,
        cluster=None,
        separation=None,
        train_balanced_accuracy=0.5,
        validation_balanced_accuracy=None,
        projected=False,
        distinct_prototypes=None,
        prototypes=4,
        seconds=0.1,
    )


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.parametrize("classes", [2, 5])
def test_balanced_accuracy_agrees_with_scikit_learn(classes):
    torch.manual_seed(classes)
    labels, logits = torch.randint(classes, (40,)), torch.randn(40, classes)
    labels[labels == classes - 1] = 0  # a class that does not occur
    confusion = torch.zeros(classes, classes, dtype=torch.long)
    add_to_confusion(confusion, logits[:25], labels[:25])
    add_to_confusion(confusion, logits[25:], labels[25:])
    predictions = logits.argmax(dim=1)
    assert confusion.tolist() == confusion_matrix(labels, predictions, labels=range(classes)).tolist()
    assert balanced_accuracy(confusion) == pytest.approx(balanced_accuracy_score(labels, predictions))


def test_rows_are_read_by_pandas(tmp_path):
    file = MetricsFile(tmp_path / "metrics.csv")
    for epoch in range(3):
        file.append(row(epoch))
    table = pd.read_csv(tmp_path / "metrics.csv")
    assert table.epoch.tolist() == [0, 1, 2]
    assert table.cluster.isna().all()
    assert table.projected.dtype == bool


def test_resuming_drops_epochs_that_run_again_and_a_row_cut_short(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    for epoch in range(4):
        file.append(row(epoch))
    path.write_text(path.read_text() + "4,joi")
    file = MetricsFile(path, first_epoch=2)
    file.append(row(2))
    assert pd.read_csv(path).epoch.tolist() == [0, 1, 2]


def test_resuming_keeps_the_epochs_of_a_version_with_fewer_columns(tmp_path):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    for epoch in range(2):
        file.append(row(epoch))
    now = pd.read_csv(path)
    now.iloc[:, :-2].to_csv(path, index=False)
    MetricsFile(path, first_epoch=2).append(row(2))
    table = pd.read_csv(path)
    assert table.columns.equals(now.columns)
    assert table.epoch.tolist() == [0, 1, 2]
    assert table.seconds.isna().tolist() == [True, True, False]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    file = MetricsFile(tmp_path / "metrics.csv")
    file.path = tmp_path / "missing" / "metrics.csv"
    with pytest.raises(ProtoPFaithError, match=r"Could not write .*metrics\.csv"):
        file.append(row(0))


def test_resuming_keeps_one_whole_row_of_each_epoch(tmp_path, caplog):
    path = tmp_path / "metrics.csv"
    file = MetricsFile(path)
    for epoch in (3, 1, 0, 1, 2):
        file.append(row(epoch))
    path.write_text(path.read_text().replace("2,joint,1", "2,joint,one") + "²" + ",x" * 14 + "\n")
    MetricsFile(path, first_epoch=4)
    assert pd.read_csv(path).epoch.tolist() == [0, 1, 3]
    assert "lacks 1 of 4 epochs" in caplog.text
