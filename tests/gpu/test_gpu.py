"""What only a GPU can show: the same answers there as on a CPU, in the number formats that are used there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from protopfaith.correlation import pearson
from protopfaith.explanation import Explainer, explain
from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet
from protopfaith.shapley import ESTIMATORS, Attribution, Game, Players, estimate
from protopfaith.training import Run

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

# The encoders of radiographs gave NaN on GPUs once, where convolutions leave slightly negative variances.
NETWORKS = {"small": 3, "convnet": 1, "resnet": 1}


def _network(encoder: str) -> ProtoPNet:
    torch.manual_seed(0)
    sizes = {"prototypes_per_class": 3, "prototype_channels": 16, "in_channels": NETWORKS[encoder]}
    return ProtoPNet(encoder, ["a", "b"], **sizes).eval()


def _image(channels: int, size: int = 64) -> torch.Tensor:
    return torch.randn(channels, size, size, generator=torch.Generator().manual_seed(1))


def _estimate(encoder: str, device: str, method: str, **options: object) -> Attribution:
    model, image = _network(encoder).to(device), _image(NETWORKS[encoder]).to(device)
    game = Game(model.distances, image, Players.windows(image.shape[-2:], 16))
    return estimate(game, method, seed=3, **options)


@pytest.mark.parametrize("encoder", sorted(NETWORKS))
@pytest.mark.parametrize("method", sorted(ESTIMATORS))
def test_estimators_agree_with_the_cpu(method: str, encoder: str) -> None:
    if method == "exact":
        pytest.skip("sixteen players take 65,536 evaluations")
    there, here = (_estimate(encoder, device, method, budget=1024) for device in ("cuda", "cpu"))
    assert bool(torch.isfinite(there.values).all())
    if bool(torch.isfinite(there.standard_errors).all()):  # other random numbers on another device
        errors = (there.standard_errors.square() + here.standard_errors.square()).sqrt()
        apart = (there.values - here.values) / errors.clamp_min(1e-6 * float(here.values.abs().max()))
        assert float(apart.square().mean()) < 2.5**2
    else:
        assert float(pearson(there.values, here.values).min()) > 0.99
    assert torch.allclose(there.total, here.total, rtol=2e-2, atol=2e-3 * float(here.total.abs().max()))


@pytest.mark.parametrize("encoder", sorted(NETWORKS))
def test_moments_agree_with_the_cpu(encoder: str) -> None:
    model, image = _network(encoder), _image(NETWORKS[encoder])[None]
    here = model.distances(Gaussian(image, torch.full_like(image, 0.1)))  # type: ignore[arg-type]
    there = model.to("cuda").distances(
        Gaussian(image.cuda(), torch.full_like(image, 0.1).cuda())  # type: ignore[arg-type]
    )
    for one, other in ((there.mean, here.mean), (there.variance, here.variance)):  # type: ignore[attr-defined]
        assert bool(torch.isfinite(one).all())
        assert torch.allclose(one.cpu(), other, rtol=2e-2, atol=2e-3 * float(other.abs().max()))


def test_resuming_on_a_gpu_gives_what_one_go_gives() -> None:
    whole = _estimate("small", "cuda", "owen", budget=2048)
    model, image = _network("small").to("cuda"), _image(3).to("cuda")
    game = Game(model.distances, image, Players.windows(image.shape[-2:], 16))
    first = estimate(game, "owen", budget=1024, seed=3)
    again = estimate(game, "owen", budget=2048, seed=3, resume=first)
    assert again.evaluations == whole.evaluations
    assert float(pearson(again.values, whole.values).min()) > 0.9


def test_explanations_in_half_precision_have_the_networks_own_totals(run: Run) -> None:
    image = run.data().test.image(3)
    here = explain(Explainer(run), image, players=12, budget=2048, sources=False)
    there = explain(
        Explainer(run, device="cuda"), image, players=12, budget=2048, autocast="bfloat16", sources=False
    )
    assert there.settings["autocast"] == "bfloat16"
    # Batch sizes differ, and with them the sums' rounding.
    assert there.class_map.total == pytest.approx(here.class_map.total, rel=1e-3, abs=1e-3)
    assert float(pearson(there.class_map.values, here.class_map.values)) > 0.9
    assert there.prediction == here.prediction


def test_reports_are_written_from_a_gpu(run: Run, tmp_path: Path) -> None:
    explanation = explain(Explainer(run, device="cuda"), run.data().test.image(0), players=12, budget=512)
    assert explanation.report(tmp_path / "report.html").stat().st_size > 10_000
