"""Where training images come from: one uint8 tensor on the device when it fits, loading processes otherwise.

Both give batches of plain uint8 images on the device; augmentation and normalization happen there, a batch
at a time. Nothing here draws random numbers, so both give the same images in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from protopfaith.data import ImageSet

UNKNOWN_MEMORY = 4 << 30  # bytes that count as free where the system does not say


class ImageBatches(Protocol):
    """Images by index."""

    labels: Tensor

    def __len__(self) -> int: ...

    def batches(self, order: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """For every tensor of indices: images (uint8, B x C x H x W) and labels (B), on the device."""
        ...


class ResidentImages:
    """The whole set as one uint8 tensor on the device."""

    def __init__(self, images: ImageSet, device: torch.device):
        self.pixels = images.uint8().to(device)
        self.labels = images.labels.to(device)

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, order: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        if not order:
            return
        everything = torch.cat(list(order)).to(self.pixels.device)  # one transfer for the whole epoch
        for indices in everything.split([len(indices) for indices in order]):
            yield self.pixels[indices], self.labels[indices]


class _Order:
    """A batch sampler whose batches are set anew for every pass, so that loading processes can stay."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class StreamedImages:
    """Images read by `workers` processes while the device computes."""

    def __init__(self, images: ImageSet, device: torch.device, workers: int):
        self.device = device
        self.labels = images.labels.to(device)
        self.order = _Order()
        self.loader: DataLoader[tuple[Tensor, int | Tensor]] = DataLoader(
            images,
            batch_sampler=self.order,
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=4 if workers else None,
            pin_memory=device.type == "cuda",
        )

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self, order: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        self.order.batches = [indices.tolist() for indices in order]
        for pixels, labels in self.loader:
            yield pixels.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)


def open_images(
    images: ImageSet, device: torch.device, resident: str = "auto", workers: int = 0
) -> ImageBatches:
    """The set on the device if it may be (`resident`: "always", "never", "auto": if it takes at most a
    third of the free memory), loading processes otherwise."""
    if resident == "always" or (resident == "auto" and _bytes(images) <= free_memory(device) / 3):
        return ResidentImages(images, device)
    return StreamedImages(images, device, workers)


def free_memory(device: torch.device) -> int:
    """Free bytes on the device; a careful guess where the system does not say (Windows)."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if not hasattr(os, "sysconf"):
        return UNKNOWN_MEMORY
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def _bytes(images: ImageSet) -> int:
    return len(images) * images.image(0).numel() if len(images) else 0


def shuffled_order(
    count: int, batch_size: int, generator: torch.Generator, rank: int = 0, ranks: int = 1
) -> list[Tensor]:
    """This rank's share of every batch of a shuffled epoch.

    Batches are equally large: what is left over sits out this epoch (a last batch of one image would upset
    batch norm). With fewer images than `batch_size` there is one batch of all.
    """
    batch_size = min(batch_size, count)
    order = torch.randperm(count, generator=generator)[: count - count % batch_size]
    return [batch[rank::ranks] for batch in order.split(batch_size)]


def sequential_order(count: int, batch_size: int, rank: int = 0, ranks: int = 1) -> list[Tensor]:
    """This rank's share of `count` images, in order, in batches."""
    mine = torch.arange(count)[rank::ranks]
    return list(mine.split(batch_size)) if len(mine) else []


def ahead(batches: Iterator[tuple[Tensor, Tensor]], device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """The same batches; on a GPU each is made while the step before is computed, on a stream of its own.

    >>> [len(images) for images, _ in ahead(iter([(torch.zeros(2), torch.zeros(2))]), torch.device("cpu"))]
    [2]
    """
    if device.type != "cuda":
        yield from batches
        return
    beside, steps = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def make() -> tuple[Tensor, Tensor] | None:
        with torch.cuda.stream(beside):
            return next(batches, None)

    beside.wait_stream(steps)
    batch = make()
    while batch is not None:
        steps.wait_stream(beside)
        for tensor in batch:
            tensor.record_stream(steps)  # its memory is not used again before the step is over
        following = make()
        yield batch
        batch = following
