"""CUDA graphs of the training step: the same gradients, the same losses, and no waiting for the device."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from protopfaith.network import build_encoder
from protopfaith.training import graphs, load_recipe, loop, train
from protopfaith.training.batch_norm import held_batch_norm
from protopfaith.training.graphs import capture_step

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SMALL = [
    "data.size=[64, 64]",
    "data.options={train: 320, validation: 32, test: 16}",
    "model.encoder=resnet18",
    "model.prototypes_per_class=2",
    "model.prototype_channels=16",
    "optimization.batch_size=16",
    "schedule.cycles=1",
    "schedule.pretraining.epochs=3",
    "schedule.warmup.epochs=1",
    "schedule.joint.epochs=3",
    "schedule.classifier.epochs=1",
    "costs.diversity=1.0",
    "costs.individual=1.0",
    "costs.companion=1.0",
    "optimization.clip=10",
    "compute.accelerator=cuda",
    "compute.precision=bf16-mixed",
    "compute.channels_last=true",
]

# At usual rates rounding grows from step to step: two equal trainings end up to a tenth apart.
GENTLE = [
    "optimization.learning_rate=0.0001",
    "schedule.pretraining.learning_rate=0.0001",
    "model.initialization=random",
]
# By how much the mean loss of 20 gentle steps may differ: noise of bfloat16's size at every convolution moves
# it by four percent.
ROUNDING = {"32-true": 0.02, "bf16-mixed": 0.1}
COPIES = ["augmentation.hide.share=0.5", "augmentation.hide.copies=true"]


def _gradients(encoder: nn.Module, encoded: Tensor) -> list[Tensor]:
    encoder.zero_grad()
    encoded.float().square().mean().backward()
    return [parameter.grad.clone() for parameter in encoder.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("autocast", [False, True])
def test_two_passes_of_one_step_are_replayed_as_they_are_computed(autocast: bool) -> None:
    """Whole images, then copies with held batch norms; a step's gradients are those of both."""
    torch.manual_seed(0)
    encoder = build_encoder("resnet18", 3).cuda().train()
    twin, said = copy.deepcopy(encoder), []
    graphed = graphs.GraphedEncoder(encoder, said.append, graphs.WORTHWHILE)
    rounding = 0.1 if autocast else 0.02
    for _ in range(3):
        images = torch.randn(12, 3, 64, 64, device="cuda")
        found = []
        with graphed.replaying():
            for network in (encoder, twin):
                network.zero_grad()
                with torch.autocast("cuda", dtype=torch.bfloat16, enabled=autocast):
                    loss = network(images[:8]).float().square().mean()
                    with held_batch_norm(network):
                        loss = loss + network(images[8:]).float().square().mean()
                loss.backward()
                found.append([parameter.grad.clone() for parameter in network.parameters()])
        for one, other in zip(*found, strict=True):
            assert float((one - other).norm()) <= rounding * float(other.norm()) + 1e-6
        for one, other in zip(encoder.buffers(), twin.buffers(), strict=True):
            assert torch.allclose(one.float(), other.float(), rtol=rounding / 20, atol=rounding / 200)
    assert not said
    assert len(graphed.steps) == 2


@pytest.mark.parametrize("precision", ROUNDING)
@pytest.mark.parametrize(("more", "passes"), [([], 1), (COPIES, 2)])
def test_training_with_graphs_has_the_losses_of_training_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], passes: int, precision: str
) -> None:
    captured, rounding = [], ROUNDING[precision]

    def counted(encoder: nn.Module, images: Tensor) -> graphs.Step:
        step = capture_step(encoder, images)
        captured.append(images.shape)
        return step

    monkeypatch.setattr(graphs, "capture_step", counted)
    losses = {}
    for wanted in ("auto", "never"):
        overrides = [*SMALL, *GENTLE, *more, f"compute.precision={precision}", f"compute.graphs={wanted}"]
        recipe = load_recipe("birds", overrides)
        table = train(recipe, tmp_path / wanted, progress=False).metrics()
        losses[wanted] = table[table.stage.isin(["pretraining", "joint"])].loss.to_numpy()
    assert len(captured) == 2 * passes
    assert losses["auto"] == pytest.approx(losses["never"], rel=rounding)


@pytest.mark.parametrize("more", [[], COPIES])
def test_no_step_waits_for_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    whole = loop.Trainer.train_epoch
    watched = []

    def watch(trainer: loop.Trainer, *args: object) -> dict[str, Tensor]:
        if trainer.saver.position.epoch:  # the first epoch of a stage captures
            watched.append(trainer.saver.position.stage)
            torch.cuda.set_sync_debug_mode("error")
        try:
            return whole(trainer, *args)  # type: ignore[arg-type]
        finally:
            torch.cuda.set_sync_debug_mode("default")

    batches = loop.TrainingImages.order  # brought to the GPU once in an epoch, which is no step
    monkeypatch.setattr(
        loop.TrainingImages, "order", lambda self, *when: [part.cuda() for part in batches(self, *when)]
    )
    monkeypatch.setattr(loop.Trainer, "train_epoch", watch)
    train(load_recipe("birds", [*SMALL, *more]), tmp_path / "run", progress=False)
    assert watched == [0, 0, 2, 2]
