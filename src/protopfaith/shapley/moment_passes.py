"""Games on random variables: the game's function on an image whose players are present at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.moments.draws import Independent
from protopfaith.moments.presence import PlayerImage
from protopfaith.shapley.game import Game
from protopfaith.shapley.memory import LARGEST_BATCH, is_out_of_memory, peak_bytes, release_memory


def player_image(game: Game) -> PlayerImage:
    """The game's image with its players as on/off variables; ``drawn`` gives it its draws."""
    nobody = Independent(torch.zeros(1, device=game.device))
    return PlayerImage(game.image, game.baseline, game.players.labels, nobody)


def moment_pass(game: Game, image: PlayerImage, *, full: bool = False) -> Tensor:
    """The expectation of the game's function over the image's draws, (B, outputs); ``full`` leaves the game's
    autocast out."""
    dtype = None if full else game.autocast
    with torch.autocast(game.device.type, dtype=dtype, enabled=dtype is not None):
        output = game.function(image)  # type: ignore[arg-type]
    if not isinstance(output, Gaussian):
        raise ProtoPFaithError(
            f"The function returned {type(output).__name__} for random variables, but moment propagation "
            "needs their moments; write the function with torch operations on its argument alone."
        )
    mean = output.moments[0]
    return mean[:, None] if mean.dim() == 1 else mean


def check_finite(values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise ProtoPFaithError(
            "Moment propagation gave NaN or infinity; check that the network's weights are finite, and run "
            "it in float32 without autocast."
        )


def in_batches(
    function: Callable[[Tensor], Tensor],
    start: int,
    stop: int,
    *,
    size: int,
    device: torch.device,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Numbers ``start`` ... ``stop`` - 1 in batches of ``size``, each with ``function`` of it; in smaller
    batches once memory runs out."""
    while start < stop:
        numbers = torch.arange(start, min(start + size, stop), device=device)
        values = _unless_out_of_memory(function, numbers)
        if values is None:
            release_memory(device)
            size = len(numbers) // 2
            continue
        yield numbers, values
        start += len(numbers)


def fitting(game: Game, function: Callable[[Tensor], Tensor]) -> int:
    """How many numbers ``function`` can take at a time within the game's memory bound."""
    one, three = (torch.zeros(count, dtype=torch.long, device=game.device) for count in (1, 3))
    function(one)  # fills what is kept for all batches
    # The difference is per number, whatever is held once (weights, first-layer sums).
    each = max((peak_bytes(function, three) - peak_bytes(function, one)) // 2, 1)
    return int(min(max(game.memory // each, 1), LARGEST_BATCH))


def _unless_out_of_memory(function: Callable[[Tensor], Tensor], numbers: Tensor) -> Tensor | None:
    try:
        return function(numbers)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(numbers) == 1:
            raise ProtoPFaithError(
                "Memory ran out on the smallest batch of moment passes; free memory on the device or use a "
                "smaller network or image."
            ) from error
    return None
