from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest

from protopfaith.data import DATASETS, load_data, options_of
from protopfaith.data.registry import COMMON, as_size, check_place, default_fold, is_drawn
from protopfaith.errors import ProtoPFaithError


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_data_set_describes_itself_and_takes_the_common_arguments(name) -> None:
    loader = DATASETS[name]
    assert (loader.__doc__ or "").splitlines()[0]
    assert set(COMMON) <= set(inspect.signature(loader).parameters)
    assert not set(options_of(name)) & set(COMMON)


def test_the_fold_that_nobody_chose_is_up_to_the_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*, fold): ...

    def choosy(*, fold="auto"): ...

    monkeypatch.setitem(DATASETS, "silent", silent)
    monkeypatch.setitem(DATASETS, "choosy", choosy)
    assert default_fold("silent") is None
    assert default_fold("choosy") == "auto"


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_every_data_set_refuses_a_root_without_its_images(name, tmp_path) -> None:
    for root in (tmp_path / "nothing", tmp_path):
        with pytest.raises(ProtoPFaithError):
            load_data(name, root=root)


@pytest.mark.parametrize("name", ["cub", "dogs", "folder", "rsna"])
def test_a_data_set_on_disk_asks_for_its_root(name) -> None:
    with pytest.raises(ProtoPFaithError):
        load_data(name)


def test_options_are_checked_by_name() -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'train'"):
        load_data("birds", trian=3)


def test_sizes() -> None:
    assert as_size(None, 96) == (96, 96)
    assert as_size(48, 96) == (48, 48)
    assert as_size((48, 64), 96) == (48, 64)
    with pytest.raises(ProtoPFaithError, match="too small"):
        as_size(4, 96)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda: {}["beach"], "fails with KeyError: 'beach' .line .* of test_registry.py"),
        (sys.exit, "fails with SystemExit"),
        (lambda: None, "gives must be an ImageData, not None"),
        (dict, "gives must be an ImageData"),
    ],
)
def test_what_the_data_set_of_somebody_else_raises_is_told_as_its_fault(
    body: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*, root: Any, size: Any, seed: Any, fold: Any, skip_unreadable: Any) -> Any:
        return body()

    monkeypatch.setitem(DATASETS, "shells", load)
    with pytest.raises(ProtoPFaithError, match=f"data set 'shells' {words}"):
        load_data("shells")


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_a_place_is_a_folder_of_images_that_are_read(name, tmp_path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"There is no folder|leave out the folder"):
        check_place(name, tmp_path / "nothing")
    if is_drawn(name):
        with pytest.raises(ProtoPFaithError, match="drawn, not read"):
            check_place(name, tmp_path)
    else:
        check_place(name, tmp_path)


def test_what_is_drawn_needs_no_root() -> None:
    assert {name for name in DATASETS if is_drawn(name)} == {"birds", "birds_multilabel"}
