"""The cache: whole or absent, keyed by content, for any number of processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import Preprocessing, load_data, prepare
from protopfaith.data.cache import build_once, cache_folder, cached_images, content_hashes
from protopfaith.data.folder import list_folder
from protopfaith.data.images import read_image
from protopfaith.errors import ProtoPFaithError

Save = Callable[..., Path]


@pytest.fixture
def root(tmp_path: Path, save: Save) -> Path:
    for label, name in enumerate(("cat", "dog")):
        for i in range(12):
            save(tmp_path / "pictures" / name / f"{i}.png", 100 * label + i)
    return tmp_path / "pictures"


def test_every_image_is_cached_as_it_would_be_read(root: Path) -> None:
    listing = list_folder(root)
    preprocessing = Preprocessing((9, 11))
    cached = cached_images(listing, content_hashes(listing), preprocessing)
    assert cached.paths == [entry.path for entry in listing.entries]
    for row, path in enumerate(cached.paths):
        image = read_image(root / path)
        assert np.array_equal(cached.pixels[row], preprocessing.uint8(image).numpy())
        assert cached.sizes[row] == (image.height, image.width)


def test_sizes_and_channels_have_their_own_cache(root: Path, cache: Path) -> None:
    load_data("folder", root=root, size=16)
    load_data("folder", root=root, size=16)
    assert len(list((cache / "images").iterdir())) == 1
    load_data("folder", root=root, size=20)
    load_data("folder", root=root, size=16, channels=1)
    assert len(list((cache / "images").iterdir())) == 3


def test_images_decoded_by_another_version_are_not_used(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing, preprocessing = list_folder(root), Preprocessing((16, 16))
    hashes = content_hashes(listing)
    with monkeypatch.context() as before:
        before.setattr("protopfaith.data.cache.DECODING", 1)
        black = replace(listing, read=lambda _: Image.new("L", (16, 16)))  # as float images once were
        assert not cached_images(black, hashes, preprocessing).pixels.any()
    assert cached_images(listing, hashes, preprocessing).pixels.any()


def test_an_image_that_could_not_be_read_is_tried_again(root: Path) -> None:
    def flaky(path: Path) -> Image.Image:
        if path.name == "3.png":
            raise OSError(errno.EIO, "Input/output error")
        return read_image(path)

    listing, preprocessing = list_folder(root), Preprocessing((16, 16))
    hashes = content_hashes(listing)
    for _ in range(2):
        assert list(cached_images(replace(listing, read=flaky), hashes, preprocessing).unreadable) == [
            "cat/3.png",
            "dog/3.png",
        ]
    assert len(cached_images(listing, hashes, preprocessing).paths) == 24
    # What was read once stays, whatever happens to the disk later.
    assert len(cached_images(replace(listing, read=flaky), hashes, preprocessing).paths) == 24


def names(folder: Path) -> list[str]:
    """What is in a folder that was built."""
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_build_leaves_nothing_and_starts_again(root: Path, cache: Path) -> None:
    class Interrupted(BaseException):
        pass

    def stop(_: Path) -> None:
        raise Interrupted

    folder = cache / "images" / "something"
    with pytest.raises(Interrupted):
        build_once(folder, stop, names)
    assert list((cache / "images").iterdir()) == []
    assert build_once(folder, lambda place: (place / "file").touch(), names) == ["file"]


def test_two_processes_may_build_at_once(cache: Path) -> None:
    """The second finds the folder there when it is done: the first one's content stays."""
    folder = cache / "images" / "something"

    def slow(place: Path) -> None:
        build_once(folder, lambda other: (other / "first").touch(), names)
        (place / "second").touch()

    build_once(folder, slow, names)
    assert [path.name for path in folder.iterdir()] == ["first"]
    assert [path.name for path in folder.parent.iterdir()] == ["something"]


def test_preparing_again_is_the_same(root: Path) -> None:
    first, second = prepare("folder", root, 16), prepare("folder", root, 16)
    assert first.data.fingerprint == second.data.fingerprint
    assert "24 images of 2 classes (12 to 12 each)" in str(second)


def test_a_file_that_may_not_be_opened_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "7.png":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    opened = Path.open
    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(ProtoPFaithError, match=r"7\.png cannot be read \(Permission denied\)"):
        load_data("folder", root=root, size=16)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="space cannot be reserved here")
def test_a_full_disk_is_found_before_anything_is_decoded(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(ProtoPFaithError, match="No space left on device"):
        load_data("folder", root=root, size=16)
    assert not list((cache / "images").iterdir())


@pytest.mark.parametrize("name", ["index.json", "pixels.npy"])
@pytest.mark.parametrize("content", [b"", b"{}", b"x" * 2000])
def test_a_broken_cache_is_made_anew(name, content, save, tmp_path) -> None:
    for number in range(20):
        save(tmp_path / "images" / f"class{number % 2}" / f"{number}.png", number)
    first = load_data("folder", root=tmp_path / "images", size=16)
    pixels = first.train.uint8()
    (folder,) = (cache_folder() / "images").iterdir()
    (folder / name).unlink()  # not written over: a mapped file that shrinks ends the process
    (folder / name).write_bytes(content)
    again = load_data("folder", root=tmp_path / "images", size=16)
    assert again.fingerprint == first.fingerprint
    assert again.train.uint8().equal(pixels)


def test_changed_pixels_are_noticed(save, tmp_path) -> None:
    for number in range(20):
        save(tmp_path / "images" / f"class{number % 2}" / f"{number}.png", number)
    first = load_data("folder", root=tmp_path / "images", size=16).train.uint8().clone()
    (folder,) = (cache_folder() / "images").iterdir()
    content = bytearray((folder / "pixels.npy").read_bytes())
    content[500:600] = bytes(100)
    (folder / "pixels.npy").write_bytes(content)
    assert load_data("folder", root=tmp_path / "images", size=16).train.uint8().equal(first)


def test_nobody_else_can_look_into_the_cache(save, tmp_path) -> None:
    for number in range(20):
        save(tmp_path / "images" / f"class{number % 2}" / f"{number}.png", number)
    load_data("folder", root=tmp_path / "images", size=16)
    for folder in (cache_folder(), *(path for path in cache_folder().rglob("*") if path.is_dir())):
        assert folder.stat().st_mode & 0o077 == 0, folder
