from __future__ import annotations

import pytest
import torch
from torch import nn

from protopfaith.network import build_encoder
from protopfaith.training import graphs
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


def test_where_nothing_can_be_captured_it_says_so_once_and_goes_on(encoder) -> None:
    said: list[str] = []

    def refuse(encoder: nn.Module, images: torch.Tensor):
        raise RuntimeError("operation not permitted")

    with GraphedEncoder(encoder, said.append, WORTHWHILE, refuse).replaying():
        for _ in range(3):
            encoder(images()).sum().backward()
    assert len(said) == 1
    assert "operation not permitted" in said[0]


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


@pytest.fixture
def pretended(monkeypatch) -> None:
    """As if the CPU could capture: the encoder is tried out, as torch does, then computed."""

    def make(encoder: nn.Module, samples: tuple[torch.Tensor], **options: object) -> None:
        assert not torch.is_autocast_cache_enabled() or not torch.is_autocast_enabled("cuda")
        for _ in range(3):
            encoder(*samples).sum().backward()
        encoder.forward = lambda batch: type(encoder).forward(encoder, batch)

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", make)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


@pytest.mark.usefixtures("pretended")
def test_capturing_leaves_statistics_and_random_numbers_as_they_were(encoder) -> None:
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    random = torch.get_rng_state()
    step = capture_step(encoder, images())
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert "forward" not in encoder.__dict__
    assert torch.equal(step(images()), encoder(images()))


@pytest.mark.usefixtures("pretended")
def test_what_replays_something_else_is_refused(encoder, monkeypatch) -> None:
    def make(encoder: nn.Module, samples: tuple[torch.Tensor], **options: object) -> None:
        frozen = encoder(*samples)
        encoder.forward = lambda batch: 1.1 * frozen

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", make)
    with pytest.raises(RuntimeError, match="differs"):
        capture_step(encoder, images())
    assert "forward" not in encoder.__dict__


def test_one_gpu_alone(monkeypatch) -> None:
    gpu = torch.device("cuda")
    assert can_be_captured(gpu, 1, compiled=False, streamed=False)
    assert not can_be_captured(CPU, 1, compiled=False, streamed=False)
    assert not can_be_captured(gpu, 2, compiled=False, streamed=False)
    assert not can_be_captured(gpu, 1, compiled=True, streamed=False)
    monkeypatch.setattr(graphs, "_beside_other_threads", dict)  # as with earlier versions of torch
    assert not can_be_captured(gpu, 1, compiled=False, streamed=True)


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
