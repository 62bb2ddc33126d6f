from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.training import Run
from tests.cli.conftest import fails_with, protopfaith
from tests.conversion.originals import original, save_original


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a network of the original ProtoPNet, and names of its classes."""
    folder = tmp_path_factory.mktemp("convert")
    save_original(original("resnet18", size=64), folder / "a.pth", whole=False)
    (folder / "names.txt").write_text("blue\ngreen\nred\n")
    return folder


def test_options_reach_the_conversion_and_what_was_found_is_said(folder: Path) -> None:
    told = ("--similarity", "linear", "--size", "48", "--classes", "names.txt", "--format", "protopnet")
    done = protopfaith(folder, "convert", "a.pth", "--out", "new", *told, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    for words in (
        "Encoder: resnet18",
        "Similarity: linear",
        "Prototypes: 6 of 32",
        "explain new IMAGE --no-sources",
    ):
        assert words in done.stdout
    run = Run(folder / "new")
    model = run.model()
    assert model.class_names == ("blue", "green", "red")
    assert model.similarity == "linear"
    assert run.preprocessing().size == (48, 48)
    assert "The file does not say its" not in done.stdout


def test_what_the_file_does_not_say_is_told(folder: Path) -> None:
    done = protopfaith(folder, "convert", "a.pth", "--out", "bare", "--device", "cpu")
    for what in ("similarity; log is", "epsilon; 0.0001 is", "size; 224 is"):
        assert f"The file does not say its {what} assumed" in done.stdout


def test_an_epsilon_that_is_not_used_is_told(folder: Path) -> None:
    told = ("--similarity", "linear", "--epsilon", "0.1", "--size", "48", "--device", "cpu")
    done = protopfaith(folder, "convert", "a.pth", "--out", "linear", *told)
    assert "The linear similarity has no epsilon" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.pth", "--out", "x"], ["There is nothing at", "nothing.pth", ".pth file"]),
        (["names.txt", "--out", "x"], ["names.txt"]),
        (["a.pth", "--out", "x", "--similarity", "cosine"], ["cosine"]),
        (["a.pth", "--out", "x", "--classes", "a.pth"], ["a.pth"]),
        (["a.pth", "--out", "x", "--root", "missing"], ["missing"]),
    ],
)
def test_what_cannot_be_converted_is_one_sentence_and_leaves_nothing(
    folder: Path, arguments: list[str], words: list[str]
) -> None:
    fails_with(protopfaith(folder, "convert", *arguments), *words)
    assert not (folder / "x").exists()
