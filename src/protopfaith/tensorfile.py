"""Safetensors files with a JSON header of ours: the one place that writes and reads them.

Loading runs no code. A checksum over header and tensors tells flipped bits; files of earlier versions have
none and load with a note.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.files import plain_file
from protopfaith.writing import atomic

if TYPE_CHECKING:
    from torch import Tensor

CHECKSUM = "sha256"
logger = logging.getLogger("protopfaith")


class TensorFileError(Exception):
    """Why a file holds no tensors of ours, in a few words: callers make a sentence of it."""


def write_tensors(
    path: Path | str, key: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Writes tensors with a JSON header under `key`, whole or not at all.

    Args:
        path: the file
        key: the name of the header in the file's metadata
        header: anything that JSON holds
        tensors: by name, on any device; they may share memory

    Raises:
        TypeError, ValueError: if the header is more than JSON holds
    """
    from safetensors.torch import save as to_bytes

    text = json.dumps(header)
    # Copies: safetensors refuses tensors that share memory, as tied weights of a user's encoder may.
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    content = to_bytes(copies, metadata={key: text, CHECKSUM: checksum(text, copies)})
    with atomic(path) as partial:
        partial.write_bytes(content)


def read_header(path: Path | str, key: str) -> Any:
    """The header under `key` alone; no tensor is read. None if the file has no such header.

    Raises:
        TensorFileError: if it is no safetensors file, or the header is no JSON
    """
    return _parsed(_open(path)[0].get(key))


def read_tensors(path: Path | str, key: str) -> tuple[Any, dict[str, Tensor]]:
    """Header and tensors, which are checked against the file's checksum.

    Raises:
        TensorFileError: if it is no safetensors file, is damaged, or the header is no JSON
    """
    metadata, tensors = _open(path, with_tensors=True)
    text, known = metadata.get(key), metadata.get(CHECKSUM)
    if text is not None and known is None:
        logger.info("%s has no checksum, as files of earlier versions; damage would not be noticed.", path)
    if text is not None and known is not None and known != checksum(text, tensors):
        raise TensorFileError("its checksum does not fit its content, so it is damaged")
    return _parsed(text), tensors


def checksum(text: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over the header's text and every tensor's name, type, shape and bytes."""
    import torch

    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\0{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _open(path: Path | str, *, with_tensors: bool = False) -> tuple[dict[str, str], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(plain_file(path), framework="pt" if with_tensors else "np") as file:
            names = file.keys() if with_tensors else ()
            # clone: memory of torch's own alignment, so that resuming computes the same bits
            return file.metadata() or {}, {name: file.get_tensor(name).clone() for name in names}
    except SafetensorError as error:
        early = "IncompleteBuffer" in str(error)
        why = "it ends early" if early else "it does not begin as such a file does"
        raise TensorFileError(why) from error
    except (OSError, ValueError, TypeError, MemoryError) as error:
        raise TensorFileError(f"{error}".strip() or type(error).__name__) from error


def _parsed(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TensorFileError("its header is not JSON") from error
