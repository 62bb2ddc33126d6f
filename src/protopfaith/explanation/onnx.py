"""ONNX models as functions of images, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.function_outputs import LOGITS
from protopfaith.files import is_file, reason

USUAL_SIDE = 224
LARGEST_BATCH = 1024  # of a model that takes one size alone: smaller batches are filled up with zeros
DTYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


class OnnxFunction:
    """The scores of an ONNX model, from images as tensors (B, C, H, W): of several outputs the one that is
    called logits or the like, or else the first that has one row of numbers for each image.

    Models that take one batch size alone, and those that want channels last, are called as they want it.

    Args:
        path: a .onnx file
    """

    def __init__(self, path: Path | str):
        try:
            import onnxruntime
        except ImportError as error:
            raise ProtoPFaithError(
                "ONNX models need onnxruntime: install it with pip install 'protopfaith[onnx]'."
            ) from error
        if not is_file(Path(path)):
            raise ProtoPFaithError(f"There is no file {path}; give an ONNX model, or a function of images.")
        try:
            self.session: Any = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class of exceptions for each of its own reasons
            raise ProtoPFaithError(f"{path} is no ONNX model that can be run ({reason(error)}).") from error
        inputs = self.session.get_inputs()
        if len(inputs) != 1 or len(inputs[0].shape) != 4 or inputs[0].type not in DTYPES:
            found = ", ".join(f"{one.type} {one.shape}" for one in inputs)
            raise ProtoPFaithError(
                f"{path} takes {found}, but a function of images takes one float tensor of four dimensions."
            )
        if isinstance(inputs[0].shape[0], int) and inputs[0].shape[0] > LARGEST_BATCH:
            raise ProtoPFaithError(
                f"{path} takes {inputs[0].shape[0]:,} images at a time and no others; export it with a batch "
                f"of any size, or of at most {LARGEST_BATCH:,}."
            )
        if not self.session.get_outputs():
            raise ProtoPFaithError(f"{path} has no output; export it with a row of scores for each image.")
        self.name, self.shape = inputs[0].name, inputs[0].shape
        self.dtype = DTYPES[inputs[0].type]
        self.output = scores_of(self.session.get_outputs())
        self.channels_last = self.shape[3] in (1, 3) and self.shape[1] not in (1, 3)

    def __repr__(self) -> str:
        return f"OnnxFunction({self.name}: {self.shape})"

    def preprocessing(self) -> Preprocessing:
        """The size that the model asks for, or the usual one, with ImageNet's colors."""
        height, width = self.shape[1:3] if self.channels_last else self.shape[2:]
        size = tuple(side if isinstance(side, int) and side > 0 else USUAL_SIDE for side in (height, width))
        if (self.shape[3] if self.channels_last else self.shape[1]) == 1:
            return Preprocessing((size[0], size[1]), 1, (0.0,), (1.0,))
        return Preprocessing((size[0], size[1]))

    def __call__(self, images: Tensor) -> Tensor:
        array = images.detach().cpu().numpy().astype(self.dtype)
        if self.channels_last:
            array = np.ascontiguousarray(array.transpose(0, 2, 3, 1))
        step = self.shape[0] if isinstance(self.shape[0], int) and self.shape[0] > 0 else len(array)
        rows = [self._run(array[first : first + step], step) for first in range(0, len(array), step)]
        return torch.from_numpy(np.concatenate(rows)).to(images.device)

    def _run(self, array: np.ndarray, size: int) -> np.ndarray:
        """One call; a batch that is too small is filled up with zeros."""
        count = len(array)
        if count < size:
            array = np.concatenate([array, np.zeros((size - count, *array.shape[1:]), array.dtype)])
        found = np.asarray(self.session.run([self.output], {self.name: array})[0])
        if found.dtype.kind not in "fiub":
            raise ProtoPFaithError(
                f"The output {self.output} of the ONNX model holds no numbers (it may be a list or a "
                "mapping); export it with a tensor of scores as its first output."
            )
        if size > 1 and found.shape[:1] != (len(array),):  # one image may come without its dimension
            raise ProtoPFaithError(
                f"The output {self.output} of the ONNX model has the shape {tuple(found.shape)} for "
                f"{len(array)} images; it should have one row for each."
            )
        if sum(side > 1 for side in found.shape[1:]) > 1:  # a map of one position is a row
            raise ProtoPFaithError(
                f"The output {self.output} of the ONNX model has the shape {tuple(found.shape)}, which is a "
                "map; export the model with one row of scores for each image as its first output."
            )
        return found.reshape(len(array), -1)[:count].astype(np.float32)


def scores_of(outputs: Sequence[Any]) -> str:
    """The name of the output to explain.

    Args:
        outputs: of a session, each with a name, a type and a shape

    >>> from types import SimpleNamespace as Output
    >>> label = Output(name="label", type="tensor(int64)", shape=["N"])
    >>> scores = Output(name="probabilities", type="tensor(float)", shape=["N", 3])
    >>> scores_of([label, scores])
    'probabilities'
    """
    called = [one.name for one in outputs if one.name.lower() in LOGITS]
    rows = [one.name for one in outputs if one.type in DTYPES and len(one.shape or ()) == 2]
    return (called or rows or [outputs[0].name])[0]
