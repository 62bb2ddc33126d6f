from __future__ import annotations

import pytest
import torch
from torch import nn

from protopfaith.network import build_encoder
from protopfaith.training import graphs
from protopfaith.training.batch_norm import held_batch_norm
from protopfaith.training.graphs import WORTHWHILE, GraphedEncoder, can_be_captured, capture_step
from protopfaith.training.recipe import recipe_from_dict
from tests.training.test_loop import make_trainer

CPU = torch.device("cpu")


@pytest.fixture
def encoder() -> nn.Module:
    torch.manual_seed(0)
    return build_encoder("small", 3).train()


class Replays:
    """Captures nothing: computes anew, and counts."""

    def __init__(self) -> None:
        self.captured = self.replayed = 0

    def __call__(self, encoder: nn.Module, images: torch.Tensor):
        assert "forward" not in encoder.__dict__  # the encoder as it is
        self.captured += 1

        def step(images: torch.Tensor) -> torch.Tensor:
            self.replayed += 1
            return type(encoder).forward(encoder, images)

        return step


def images(count: int = 4) -> torch.Tensor:
    return torch.rand(count, 3, 24, 24, generator=torch.Generator().manual_seed(count))


def test_batches_like_the_first_are_replayed_and_others_computed(encoder) -> None:
    replays = Replays()
    graphed = GraphedEncoder(encoder, print, WORTHWHILE, replays)
    with graphed.replaying():
        for count in (4, 4, 3, 4):
            encoded = encoder(images(count))
            assert len(encoded) == count
            encoded.sum().backward()
        with torch.no_grad():
            encoder(images())
        encoder(images().requires_grad_())
        encoder.eval()(images())
    encoder.train()(images())  # outside
    assert (replays.captured, replays.replayed) == (1, 3)
    assert "forward" not in encoder.__dict__


def test_a_second_pass_before_the_gradients_of_the_first_is_computed(encoder) -> None:
    replays = Replays()
    with GraphedEncoder(encoder, print, WORTHWHILE, replays).replaying():
        both = encoder(images()).sum() + encoder(images()).sum()
        both.backward()
        encoder(images()).sum().backward()
    assert replays.replayed == 2


def test_a_second_pass_that_holds_batch_norms_is_replayed_by_itself(encoder) -> None:
    """As of copies with hidden regions, be they as many as the images or fewer."""
    for copies in (2, 4):
        replays = Replays()
        with GraphedEncoder(encoder, print, WORTHWHILE, replays).replaying():
            for _ in range(3):
                whole = encoder(images())
                with held_batch_norm(encoder):
                    (whole.sum() + encoder(images(copies)).sum()).backward()
        assert (replays.captured, replays.replayed) == (2, 6)


def test_where_nothing_can_be_captured_it_says_so_once_and_goes_on(encoder) -> None:
    said: list[str] = []

    def refuse(encoder: nn.Module, images: torch.Tensor):
        raise RuntimeError("operation not permitted")

    with GraphedEncoder(encoder, said.append, WORTHWHILE, refuse).replaying():
        for _ in range(3):
            encoder(images()).sum().backward()
    assert len(said) == 1
    assert "operation not permitted" in said[0]


def test_where_only_the_second_pass_cannot_be_captured_the_first_is_replayed(encoder) -> None:
    said: list[str] = []

    class Once(Replays):
        def __call__(self, encoder: nn.Module, images: torch.Tensor):
            if self.captured:
                raise RuntimeError("operation not permitted")
            return super().__call__(encoder, images)

    replays = Once()
    with GraphedEncoder(encoder, said.append, WORTHWHILE, replays).replaying():
        for _ in range(3):
            whole = encoder(images())
            with held_batch_norm(encoder):
                (whole.sum() + encoder(images(2)).sum()).backward()
    assert (replays.captured, replays.replayed) == (1, 3)
    assert len(said) == 1
    assert "second pass" in said[0]


def test_frozen_encoders_and_short_stages_are_not_captured(encoder) -> None:
    replays = Replays()
    with GraphedEncoder(encoder, print, WORTHWHILE - 1, replays).replaying():
        encoder(images()).sum().backward()
    encoder.requires_grad_(False)
    with GraphedEncoder(encoder, print, WORTHWHILE, replays).replaying():
        encoder(images())
    assert replays.captured == 0


def test_closing_gives_gradients_back(encoder) -> None:
    graphed = GraphedEncoder(encoder, print, WORTHWHILE, Replays())
    with graphed.replaying():
        encoder(images()).sum().backward()
    graphed.close()
    assert all(parameter.grad is None for parameter in encoder.parameters())


class Pretended(graphs.Graphs):
    """Computes what graphs would replay."""

    def encode(self, images: torch.Tensor) -> torch.Tensor:
        return self.factor * self.encoder(images).detach()


@pytest.fixture
def pretended(monkeypatch) -> type[Pretended]:
    """As if the CPU could capture: the encoder is tried out, then computed."""

    def capture(encoder: nn.Module, images: torch.Tensor) -> Pretended:
        for _ in range(3):
            encoder(images)
            torch.rand(1)
        made = Pretended(*[None] * 6)
        made.encoder, made.factor = encoder, Pretended.factor
        return made

    Pretended.factor = 1.0
    monkeypatch.setattr(graphs, "_capture", capture)
    monkeypatch.setattr(graphs, "_clean_up", lambda stream: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    return Pretended


@pytest.mark.usefixtures("pretended")
def test_capturing_leaves_statistics_and_random_numbers_as_they_were(encoder) -> None:
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    random = torch.get_rng_state()
    step = capture_step(encoder, images())
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(step(images()), encoder(images()))


def test_what_replays_something_else_is_refused(encoder, pretended) -> None:
    pretended.factor = 1.1
    with pytest.raises(RuntimeError, match="differs"):
        capture_step(encoder, images())


class Idle:
    def replay(self) -> None:
        """Its gradients are there already."""


@pytest.mark.parametrize("first", [0, 1])
def test_gradients_of_two_passes_of_one_step_are_added(first) -> None:
    """One replayed and one computed, whichever is differentiated first."""
    weight = nn.Parameter(torch.ones(3))
    own = torch.full((3,), 5.0)
    made = graphs.Graphs(Idle(), Idle(), torch.zeros(1), torch.zeros(3), torch.zeros(3), [(weight, own)])
    ways = [lambda: made.differentiate(torch.ones(3)), (2 * weight).sum().backward]
    ways[first]()
    ways[1 - first]()
    assert weight.grad.tolist() == [7.0] * 3


def test_gradients_lie_in_memory_as_their_weights_do() -> None:
    weight = torch.zeros(4, 3, 2, 2).to(memory_format=torch.channels_last)
    gradient = torch.rand(4, 3, 2, 2)
    moved = graphs._laid_out(gradient, weight)
    assert moved.stride() == weight.stride()
    assert torch.equal(moved, gradient)
    assert graphs._laid_out(moved, weight) is moved


def test_one_gpu_alone() -> None:
    gpu = torch.device("cuda")
    assert can_be_captured(gpu, 1, compiled=False)
    assert not can_be_captured(CPU, 1, compiled=False)
    assert not can_be_captured(gpu, 2, compiled=False)
    assert not can_be_captured(gpu, 1, compiled=True)


@pytest.mark.parametrize("wanted", ["auto", "never"])
def test_stages_that_train_the_encoder_are_captured(recipe, data, tmp_path, monkeypatch, wanted) -> None:
    """The plain classifier and two joint stages; what they learn stays the same."""
    replays = Replays()
    monkeypatch.setattr("protopfaith.training.graphs.WORTHWHILE", 2)
    monkeypatch.setattr("protopfaith.training.graphs.capture_step", replays)
    monkeypatch.setattr("protopfaith.training.loop.can_be_captured", lambda *args, **kwargs: True)
    changed = recipe_from_dict(recipe.to_dict(), [f"compute.graphs={wanted}"])
    trainer = make_trainer(changed, data, tmp_path / "run")
    trainer.fit()
    monkeypatch.undo()
    plain = make_trainer(recipe, data, tmp_path / "plain")
    plain.fit()
    assert replays.captured == (3 if wanted == "auto" else 0)
    assert torch.equal(trainer.model.prototypes, plain.model.prototypes)
