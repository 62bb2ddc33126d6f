"""Any function of images explained: which regions raise which output, with errors; page, figure and file."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from protopfaith.annotations import check_arguments
from protopfaith.arguments import named, not_empty, shown, whole_number
from protopfaith.data import Preprocessing
from protopfaith.data.images import say_once, to_rgb_or_gray
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.function_outputs import FunctionOutputs, described, first_channels
from protopfaith.explanation.game import Progress, play
from protopfaith.explanation.picture import ImageLike, Picture, from_array, open_picture, open_pixels
from protopfaith.explanation.regions import RegionValues, region_values
from protopfaith.explanation.settings import Settings, make_players
from protopfaith.files import is_file, is_folder, reason
from protopfaith.listening import EVALUATIONS, check_listener
from protopfaith.network import ProtoPNet, PrototypeNetwork
from protopfaith.registry import did_you_mean
from protopfaith.shapley import make_baseline

USUAL = 3  # outputs, where none are named: the largest ones
USUAL_SIZE = (224, 224)
OF_NETWORKS = ("second_baseline", "output", "sources", "source_parts", "source_budget", "duplicate_tolerance")
"""Settings that mean nothing for a function."""
Function = Callable[[Tensor], Any]
"""From images (B, C, H, W) to numbers (B,) or (B, outputs)."""
Prepare = Preprocessing | Callable[[Image.Image], Tensor]


@dataclass(frozen=True, eq=False)
class ExplainedOutput:
    """One output of a function on one image, and the regions' shares in it.

    Args:
        number: of the output
        name: for people
        value: on the image
        empty: on the baseline, that is on the image without any region
        regions: their shares in the difference of both, with errors

    >>> found = explain_function(lambda x: x.mean((1, 2, 3)), torch.ones(3, 32, 32), players=16)
    >>> found.outputs[0].value - found.outputs[0].empty
    1.0
    """

    number: int
    name: str
    value: float
    empty: float
    regions: RegionValues

    def __repr__(self) -> str:
        return f"ExplainedOutput({self.name!r}, value={self.value:.4g}, empty={self.empty:.4g})"


@dataclass(frozen=True, eq=False)
class FunctionExplanation:
    """What the regions of an image have to do with some outputs of a function.

    Args:
        name: of the image, for people
        pixels: uint8, C x H x W, as the function sees it
        outputs: those that were explained
        method: the estimator
        baseline: what stands where a region is absent
        evaluations: how often the function was asked
        precision: relative standard error of the maps
        precision_asked: at which to stop; None where a budget was given
        reached: whether that precision was
        seconds: what it took
        settings: players, budget, seed and options of the estimator
        path: of the image, as it was given; empty where it was no file

    >>> image = torch.ones(3, 32, 32)
    >>> found = explain_function(lambda x: x.mean((1, 2, 3)), image, names=["light"], players=16)
    >>> found
    FunctionExplanation('image', light=1, 4 regions, ... evaluations)
    >>> found.outputs[0].regions.values.round(decimals=4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    name: str
    pixels: Tensor
    outputs: tuple[ExplainedOutput, ...]
    method: str
    baseline: str
    evaluations: int
    precision: float
    precision_asked: float | None
    reached: bool
    seconds: float
    settings: dict[str, Any]
    path: str = ""

    @property
    def title(self) -> str:
        """The question that is answered."""
        return f"What raises {self.outputs[0].name}, what lowers it?"

    def save(self, stem: Path | str) -> tuple[Path, Path]:
        """Writes `stem.json` and `stem.npz`; `load_function_explanation` reads them.

        Args:
            stem: the path, with or without `.json`
        """
        from protopfaith.explanation.saving import save

        return save(self, stem)

    def figure(self, path: Path | str | None = None, **options: Any) -> Any:
        """The image and a map of each output, as a matplotlib figure.

        Args:
            path: where to write it, as .png, .pdf or .svg; nowhere by default
            options: `dpi`, `hatching`
        """
        from protopfaith.show.figures import refuse_pictures
        from protopfaith.show.function import function_figure

        if path is not None:
            refuse_pictures(path)
        return function_figure(self, path, **options)

    def report(self, path: Path | str) -> Path:
        """Writes one self-contained HTML page.

        Args:
            path: of the page
        """
        from protopfaith.show.function import write_function_report

        return write_function_report(self, path)

    def __repr__(self) -> str:
        values = ", ".join(f"{one.name}={one.value:.4g}" for one in self.outputs)
        regions = len(self.outputs[0].regions.values)
        counts = f"{regions} regions, {self.evaluations:,} evaluations"
        return f"FunctionExplanation({self.name!r}, {values}, {counts})"

    def _repr_html_(self) -> str:
        from protopfaith.show.function import function_html

        return function_html(self)


def explain_function(
    function: Function | Path | str,
    image: ImageLike,
    outputs: str | int | Sequence[str | int] | None = None,
    names: Sequence[str] | None = None,
    *,
    preprocessing: Prepare | None = None,
    name: str = "",
    device: torch.device | str | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    **keywords: Any,
) -> FunctionExplanation:
    """Which regions of an image raise or lower the outputs of any function of images?

    It may be a torchvision network, a function of your own, or the path of an ONNX model. It is only
    called: no gradients or layers are needed. Every value comes with its standard error.

    Args:
        function: from images (B, C, H, W) to (B,) or (B, outputs), tensors, arrays or lists; of a tuple, a
            list of tensors or a dictionary the one named logits counts, or the first that is not called a
            loss; or an .onnx file
        image: a path, a Pillow image, a uint8 tensor of any size, or a float tensor, the input itself
            (with a `Preprocessing`, one with values in 0..1 is normalized first)
        outputs: which to explain, by number or name; by default the three largest on the image
        names: of all outputs
        preprocessing: how images become the function's input: a `Preprocessing`, or any function from a
            Pillow image to a tensor, such as torchvision's `weights.transforms()`. By default 224 x 224
            pixels (of an ONNX model its own size) with ImageNet's colors, gray for a network of one channel.
        name: of the image, for people
        device: where to compute; by default where the parameters of a module are
        settings: how to compute it
        progress: gets (evaluations done, evaluations expected)
        keywords: fields of `Settings` such as `players`, `precision`, `budget`, `baseline`

    Returns:
        The maps, with `report`, `figure` and `save`.

    Raises:
        ProtoPFaithError: if the function does not return numbers, or an output does not exist

    >>> network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
    >>> image = torch.rand(3, 32, 32)
    >>> found = explain_function(network, image, outputs="c", names=["a", "b", "c", "d"], players=16)
    >>> [one.name for one in found.outputs]
    ['c']
    """
    check_arguments(explain_function, locals())
    check_listener(progress, EVALUATIONS)
    _check_meaningful(settings, keywords)
    names = None if names is None else [str(one) for one in names]  # also of an array
    start = time.perf_counter()
    if isinstance(image, np.ndarray):
        image = from_array(image)
    if isinstance(image, Tensor) and image.is_floating_point():
        function, _ = _callable(function, preprocessing)  # the input itself: no other size is asked for
    else:
        function, preprocessing = _callable(function, preprocessing)
    place = _device(function, device)
    picture = _as_wide(_open(image, preprocessing, place, name), function)
    settings = Settings.of(settings, **keywords).on(place, picture.input.shape[-2:])
    whole = FunctionOutputs(function)
    values = whole(picture.input[None])[0]
    numbers = _chosen(outputs, values, names)
    columns = torch.tensor(numbers)
    players = make_players(settings.players, picture.input)
    played = play(lambda x: whole(x)[:, columns], picture.input, settings, players=players, progress=progress)
    empty = whole(make_baseline(settings.baseline, picture.input)[0][None])[0]
    return FunctionExplanation(
        picture.name,
        picture.pixels,
        tuple(
            ExplainedOutput(
                number,
                _name(number, names),
                float(values[number]),
                float(empty[number]),
                region_values(played, row, 1),
            )
            for row, number in enumerate(numbers)
        ),
        played.method,
        played.baseline,
        played.evaluations,
        played.precision,
        settings.precision,
        played.reached,
        time.perf_counter() - start,
        {
            "players": played.players.description,
            "budget": settings.budget,
            "seed": settings.seed,
            "options": dict(settings.options),
        },
        picture.path,
    )


def _check_meaningful(settings: Settings | None, keywords: dict[str, Any]) -> None:
    """Raises if something is asked for that only decisions of prototype networks have."""
    decisive = [name for name in ("second_baseline", "output") if getattr(settings, name, None) is not None]
    for name in [one for one in OF_NETWORKS if one in keywords] + decisive:
        if keywords.get(name, True) not in (None, False):
            raise ProtoPFaithError(
                f"The setting {name!r} is for decisions of prototype networks and means nothing for a "
                "function; leave it out."
            )


def _callable(function: Any, preprocessing: Prepare | None) -> tuple[Function, Prepare | None]:
    """The function itself, in evaluation mode if it is a module; that of an ONNX file with its own size."""
    if isinstance(function, str | Path):
        from protopfaith.explanation.onnx import OnnxFunction

        _check_model_file(function)
        found = OnnxFunction(function)
        return found, found.preprocessing() if preprocessing is None else preprocessing
    if not callable(function):
        raise ProtoPFaithError(
            f"What is explained is a function of images or the path of an ONNX model, not {shown(function)}."
        )
    if isinstance(function, type) and issubclass(function, nn.Module):
        raise ProtoPFaithError(f"{function.__name__} is a class; give a network, an object of it.")
    if isinstance(function, nn.Module):
        function = copy.deepcopy(function).eval() if function.training else function
        if preprocessing is None and first_channels(function) == 1:
            preprocessing = Preprocessing(USUAL_SIZE, 1, (0.0,), (1.0,))
    return function, preprocessing


def _check_model_file(path: Path | str) -> None:
    """Raises if the path of a model is that of a run, which is explained otherwise, or of another folder."""
    if not is_folder(Path(not_empty(path, "The function"))):
        return
    if is_file(Path(path) / "recipe.yaml"):
        raise ProtoPFaithError(
            f"{named(path)} is a run, whose decisions are explained with pf.explain(run, image); give "
            "explain_function an ONNX model, or a function of images."
        )
    raise ProtoPFaithError(
        f"{named(path)} is a folder, where an ONNX model or a function of images is expected."
    )


def _device(function: Function, device: torch.device | str | None) -> torch.device:
    if device is not None:
        return choose_device(device)
    parameter = next(function.parameters(), None) if isinstance(function, nn.Module) else None
    if parameter is not None and parameter.is_meta:
        raise ProtoPFaithError(
            "The network has weights without numbers (on the device meta); load them first, as with "
            "load_state_dict(..., assign=True)."
        )
    return torch.device("cpu") if parameter is None else choose_device(parameter.device)


def _as_wide(picture: Picture, function: Function) -> Picture:
    """The picture in the number format of a module's parameters: one in float64 takes no other."""
    parameters = function.parameters() if isinstance(function, nn.Module) else iter(())
    dtype = next((one.dtype for one in parameters if one.is_floating_point()), torch.float32)
    return replace(picture, input=picture.input.to(dtype))


@dataclass(frozen=True)
class _Reader:
    """What `open_picture` asks of a network: where its input lies, and how many channels that has."""

    prototypes: Tensor
    in_channels: int


def _open(image: ImageLike, preprocessing: Prepare | None, device: torch.device, name: str) -> Picture:
    if isinstance(image, Tensor) and image.is_floating_point():
        if image.dim() < 3:
            raise ProtoPFaithError(
                f"An image is channels x height x width, not a tensor of shape {tuple(image.shape)}; convert "
                "it."
            )
        channels = image.shape[-3]
        known = preprocessing if isinstance(preprocessing, Preprocessing) else None
        return open_picture(image, known, _reader(device, channels), name)
    if preprocessing is None:
        say_once(
            "No preprocessing was given: images are resized to 224 x 224 pixels and normalized with "
            "ImageNet's colors."
        )
        preprocessing = Preprocessing(USUAL_SIZE)
    if isinstance(preprocessing, Preprocessing):
        return open_picture(image, preprocessing, _reader(device, preprocessing.channels), name)
    return _prepared(image, preprocessing, device, name)


def _reader(device: torch.device, channels: int) -> PrototypeNetwork:
    return cast(ProtoPNet, _Reader(torch.zeros(0, device=device), channels))


def _prepared(
    image: ImageLike, prepare: Callable[[Image.Image], Tensor], device: torch.device, name: str
) -> Picture:
    """An image as a function of the caller's makes it an input; shown is what it left of the image."""
    opened, name, path = open_pixels(image, name)
    try:
        made = prepare(to_rgb_or_gray(opened).convert("RGB"))
    except ProtoPFaithError:
        raise
    except Exception as error:
        raise ProtoPFaithError(
            f"The preprocessing fails on a Pillow image ({type(error).__name__}: {reason(error)}); give a "
            "function that makes a float tensor of channels x height x width of one."
        ) from error
    if isinstance(made, Tensor) and made.dim() == 4 and len(made) == 1:
        made = made[0]
    if not isinstance(made, Tensor) or made.dim() != 3 or not made.is_floating_point():
        raise ProtoPFaithError(
            f"The preprocessing gives {described(made)} for one image; it should give a float tensor of "
            "channels x height x width."
        )
    known = _statistics(prepare, made)
    seen = open_picture(made, known, _reader(device, len(made)), name)
    return Picture(seen.name, made.detach().to(device), seen.pixels, seen.original, path)


def _statistics(prepare: object, made: Tensor) -> Preprocessing | None:
    """Mean and standard deviation, to show the image again, where the function says them as torchvision's."""
    mean, std = getattr(prepare, "mean", None), getattr(prepare, "std", None)
    if not isinstance(mean, list | tuple) or not isinstance(std, list | tuple) or len(mean) != len(made):
        return None
    size = (made.shape[1], made.shape[2])
    return Preprocessing(size, len(made), tuple(map(float, mean)), tuple(map(float, std)))


def _chosen(
    outputs: str | int | Sequence[str | int] | None, values: Tensor, names: Sequence[str] | None
) -> list[int]:
    """The numbers of the outputs to explain."""
    if names is not None and len(names) != len(values):
        raise ProtoPFaithError(
            f"The function has {len(values)} outputs, but {len(names)} names were given; give one for each."
        )
    if not bool(torch.isfinite(values).all()):
        raise ProtoPFaithError("The function's output on the image is not finite; check it and the image.")
    if outputs is None:
        return values.argsort(descending=True)[:USUAL].tolist()
    asked = [outputs] if isinstance(outputs, str | int | np.integer) else list(outputs)
    if not asked:
        raise ProtoPFaithError("No outputs were named; name at least one, or leave them out.")
    return list(dict.fromkeys(_number(one, len(values), names) for one in asked))


def _number(asked: str | int, count: int, names: Sequence[str] | None) -> int:
    if not isinstance(asked, str):
        return whole_number(asked, "The number of an output", least=0, most=count - 1)
    known = list(names or ())
    if asked not in known:
        told = did_you_mean(asked, names) if names else "give names=..., or its number."
        raise ProtoPFaithError(f"There is no output named {shown(asked)}; {told}")
    if known.count(asked) > 1:
        raise ProtoPFaithError(f"There are {known.count(asked)} outputs named {shown(asked)}; give a number.")
    return known.index(asked)


def _name(number: int, names: Sequence[str] | None) -> str:
    return f"output {number}" if names is None else str(names[number])
