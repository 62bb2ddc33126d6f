"""The state of an unfinished run in one safetensors file with a JSON header: loading it executes no code."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protopfaith.errors import ProtoPFaithError
from protopfaith.files import check_readable
from protopfaith.tensorfile import TensorFileError, read_header, read_tensors, write_tensors

FORMAT = 1
HEADER = "protopfaith-training"


@dataclass
class Position:
    """What comes next, and the best so far."""

    stage: int = 0  # index into the run's stages
    epoch: int = 0  # within the stage; 0 also means that the stage's preparation is still to be done
    best: float | None = None  # validation balanced accuracy of model.safetensors
    stale_cycles: int = 0  # since the best
    improved: bool = False  # within the present cycle
    finished: bool = False
    probe: float | None = None  # validation balanced accuracy of the linear probe
    plain: float | None = None  # and of the plain classifier
    moved: float = 1.0  # share of the way from the probe to the trained plain classifier that was kept


@dataclass
class Checkpoint:
    """Everything that continuing needs besides recipe and data.

    Random numbers need no state: every epoch draws from generators seeded by (seed, stage, epoch).
    """

    position: Position
    tensors: dict[str, Tensor]
    sources: list[dict[str, Any] | None] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)  # of the optimizer, without its parameters
    scheduler: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] | None = None  # of its run, but for where the images lie; None of earlier versions

    def save(self, path: Path | str) -> None:
        """Whole or not at all."""
        header = {
            "format": FORMAT,
            "position": asdict(self.position),
            "sources": self.sources,
            "groups": self.groups,
            "scheduler": self.scheduler,
            "recipe": self.recipe,
        }
        write_tensors(path, HEADER, header, self.tensors)

    @classmethod
    def load(cls, path: Path | str) -> Checkpoint:
        header, tensors = _read(path, with_tensors=True)
        parts = {name: header[name] for name in ("sources", "groups", "scheduler")}
        return cls(_position(header, path), tensors, **parts, recipe=header.get("recipe"))


def read_position(path: Path | str) -> Position:
    """Where the run stands, without reading its tensors."""
    return _position(_read(path)[0], path)


def read_recipe(path: Path | str) -> Any:
    """The recipe of the run that wrote it, without reading its tensors; None of earlier versions."""
    return _read(path)[0].get("recipe")


def _position(header: dict[str, Any], path: Path | str) -> Position:
    """The position in the header; raises if it is none."""
    values = header["position"]
    kinds: dict[str, Any] = {
        "stage": int,
        "epoch": int,
        "stale_cycles": int,
        "improved": bool,
        "finished": bool,
    }
    right = isinstance(values, dict) and set(values) <= {field.name for field in fields(Position)}
    for name, kind in kinds.items() if right else ():
        value: Any = values.get(name, kind())
        right = right and type(value) is kind and (kind is bool or 0 <= value < 10**9)
    shares = [values.get(name) for name in ("best", "probe", "plain", "moved")] if right else [""]
    if not all(value is None or _is_share(value) for value in shares):
        raise _damaged(path, "its position is none")
    return Position(**values)


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, int)) and not isinstance(value, bool) and 0 <= value <= 1


def _damaged(path: Path | str, why: str) -> ProtoPFaithError:
    return ProtoPFaithError(f"{path} is not the checkpoint of a training ({why}); start a new run.")


def _read(path: Path | str, *, with_tensors: bool = False) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        header, tensors = read_tensors(path, HEADER) if with_tensors else (read_header(path, HEADER), {})
        if not isinstance(header, dict) or "format" not in header:
            raise TensorFileError("its header lacks our description")
    except TensorFileError as error:
        check_readable(path)
        raise _damaged(path, str(error)) from error
    if header["format"] != FORMAT:
        raise ProtoPFaithError(
            f"{path} has format {header['format']}, but this version reads format {FORMAT}; "
            "continue with the version that wrote it."
        )
    parts = {"position": dict, "sources": list, "groups": list, "scheduler": dict}
    for name, kind in parts.items():
        if not isinstance(header.get(name), kind):
            raise _damaged(path, f"its {name} is missing or of a wrong kind")
    return header, tensors


def pack_module(prefix: str, module: nn.Module) -> dict[str, Tensor]:
    """A module's tensors, their names after `prefix` and a dot."""
    return {f"{prefix}.{name}": tensor for name, tensor in module.state_dict().items()}


def unpack_module(prefix: str, module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Fills a module with what `pack_module` made of it."""
    start = f"{prefix}."
    own = {name[len(start) :]: tensor for name, tensor in tensors.items() if name.startswith(start)}
    check_tensors(own, module.state_dict())
    module.load_state_dict(own)


def check_tensors(saved: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raises ValueError unless the tensors have the names, shapes and kinds of `expected` and are finite.

    Args:
        saved: of a file
        expected: what they are to replace
    """
    if saved.keys() != expected.keys():
        raise ValueError(f"{sorted(saved.keys() ^ expected.keys())[0]} is missing, or too many")
    for name, tensor in saved.items():
        fresh = expected[name]
        if tensor.shape != fresh.shape or tensor.dtype != fresh.dtype or not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} is of another shape or kind, or not finite")


def pack_optimizer(optimizer: Optimizer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Its tensors by name, and its groups as plain values."""
    state = optimizer.state_dict()
    tensors = {
        f"optimizer.{index}.{name}": torch.as_tensor(value)
        for index, entries in state["state"].items()
        for name, value in entries.items()
    }
    groups = [
        {key: value for key, value in group.items() if key != "params"} for group in state["param_groups"]
    ]
    return tensors, groups


def unpack_optimizer(optimizer: Optimizer, checkpoint: Checkpoint) -> None:
    """Fills an optimizer with what `pack_optimizer` made of it."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in checkpoint.tensors.items():
        if key.startswith("optimizer."):
            _, index, name = key.split(".", 2)
            state.setdefault(int(index), {})[name] = tensor
    if state or checkpoint.scheduler.get("last_epoch") != 0:  # a stage without gradients takes no steps
        _check_moments(state, [weight for group in optimizer.param_groups for weight in group["params"]])
    groups = []
    for saved, fresh in zip(checkpoint.groups, optimizer.state_dict()["param_groups"], strict=True):
        _check_alike(saved, fresh)
        # How a step is computed is this machine's matter: flags are not taken from the file.
        flags = {key: value for key, value in fresh.items() if isinstance(value, bool | None)}
        groups.append({**saved, **flags, "params": fresh["params"]})
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _check_moments(state: dict[int, dict[str, Tensor]], weights: list[Tensor]) -> None:
    """Raises ValueError for a state that no weight of AdamW can have had after some steps."""
    if not state or not 0 <= min(state) <= max(state) < len(weights):
        raise ValueError("there is none, or that of other weights")
    for index, entries in state.items():
        moment = torch.zeros_like(weights[index], device="cpu")
        check_tensors(entries, {"step": torch.tensor(0.0), "exp_avg": moment, "exp_avg_sq": moment})
        if entries["step"] < 1 or bool((entries["exp_avg_sq"] < 0).any()):
            raise ValueError(f"that of weight {index} cannot be")


def pack_scheduler(scheduler: LRScheduler) -> dict[str, Any]:
    """The plain values of its state."""
    kept = (bool, int, float, str, list, type(None))
    return {key: value for key, value in scheduler.state_dict().items() if isinstance(value, kept)}


def unpack_scheduler(scheduler: LRScheduler, checkpoint: Checkpoint) -> None:
    """Fills a scheduler with what `pack_scheduler` made of it."""
    _check_alike(checkpoint.scheduler, scheduler.state_dict())
    scheduler.load_state_dict(checkpoint.scheduler)


def _check_alike(saved: Any, fresh: dict[str, Any]) -> None:
    """Raises ValueError for saved values that a stage cannot have, judged by those it begins with."""
    for key, value in saved.items():
        if key in fresh and not _alike(value, fresh[key], zero=key in ("lr", "_last_lr")):
            raise ValueError(f"{key} cannot be {value!r}")


def _alike(value: Any, fresh: Any, *, zero: bool = False) -> bool:
    """Whether a value is of the kind of `fresh`: a number of its sign, a flag, a list of as many."""
    if isinstance(fresh, (list, tuple)):
        same = isinstance(value, (list, tuple)) and len(value) == len(fresh)
        return same and all(_alike(*pair, zero=zero) for pair in zip(value, fresh, strict=True))
    if isinstance(fresh, (int, float)) and not isinstance(fresh, bool):
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e12
        return number and (value > 0 or fresh <= 0 or (zero and value == 0)) and (value >= 0 or fresh < 0)
    return fresh is None or isinstance(value, type(fresh))
