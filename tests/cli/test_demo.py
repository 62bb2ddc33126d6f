from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
from PIL import Image

from protopfaith.cli.demo import write_test_images
from tests.cli.conftest import fails_with, protopfaith
from tests.evaluation.conftest import data


def test_help_says_where_it_writes_and_unknown_options_are_refused(place: Path) -> None:
    told = protopfaith(place, "demo", "--help")
    assert told.returncode == 0
    assert "--out" in told.stdout
    assert "runs/demo" in told.stdout
    wrong = protopfaith(place, "demo", "--ouut", "elsewhere")
    assert wrong.returncode == 2
    assert "No such option" in wrong.stderr
    assert not (place / "elsewhere").exists()


def test_test_images_are_written_as_they_are_one_of_each_class(tmp_path: Path) -> None:
    test = data().test
    run = SimpleNamespace(folder=tmp_path, data=data)
    paths = write_test_images(run, 2)  # type: ignore[arg-type]
    assert len(set(paths)) == 2
    for label, path in enumerate(paths):
        assert path.parent.name == test.classes[label]  # which reports take for the true class
        index = test.labels.tolist().index(label)
        with Image.open(path) as image:
            assert np.array_equal(np.asarray(image), test.image(index).permute(1, 2, 0).numpy())


def test_a_name_that_is_too_long_is_one_sentence(tmp_path: Path) -> None:
    fails_with(protopfaith(tmp_path, "demo", "--out", "p" * 256), "File name too long")
    assert not list(tmp_path.iterdir())
