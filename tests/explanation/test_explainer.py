"""Explanations of single images, on a trained network."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import (
    Explainer,
    Explanation,
    RegionValues,
    class_row,
    explain,
    explain_files,
    explain_prototypes,
)
from protopfaith.explanation.picture import to_pil
from protopfaith.explanation.regions import weighted_values
from protopfaith.explanation.saving import load
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Game, Players, estimate
from protopfaith.specs import OUTPUTS
from tests.scripts import ROOT, load_script


def every_map(explanation: Explanation) -> list[RegionValues]:
    maps = [explanation.class_map, *(one.test for one in explanation.evidence)]
    return maps + [one.source_side.regions for one in explanation.evidence if one.source_side is not None]


def test_what_the_caller_computes_in_changes_nothing(explainer: Explainer, pixels: torch.Tensor) -> None:
    plain = explainer.explain(pixels, budget=96, sources=False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = explainer.explain(pixels, budget=96, sources=False)
    assert torch.equal(plain.class_map.values, inside.class_map.values)
    assert torch.equal(plain.probabilities, inside.probabilities)


def test_values_sum_to_what_is_shared_within_the_reported_gap(explanation: Explanation) -> None:
    for regions in every_map(explanation):
        missing = abs(float(regions.values.sum()) - regions.total)
        assert missing <= abs(regions.gap) + 1e-4 * max(1.0, abs(regions.total))


def test_totals_are_differences_of_distances(explainer: Explainer, explanation: Explanation) -> None:
    model, x = explainer.model, explainer.preprocessing(explanation.pixels)  # type: ignore[misc]
    with torch.no_grad():
        whole, nothing = model.distances(torch.stack([x, torch.zeros_like(x)])).double()
    for one in explanation.evidence:
        assert one.distance == pytest.approx(float(whole[one.prototype]), abs=1e-5)
        assert one.test.total == pytest.approx(float((whole - nothing)[one.prototype]), abs=1e-4)
        assert one.source_side is not None
        # On its own source image a prototype is at distance zero.
        assert one.source_side.regions.total == pytest.approx(-float(nothing[one.prototype]), abs=1e-3)


def test_the_class_map_is_the_weighted_sum_of_all_prototypes(
    explainer: Explainer, explanation: Explanation
) -> None:
    weights = explainer.model.classifier.weight.detach().double()
    centered = weights[explanation.target] - weights.mean(0)
    expected = torch.zeros_like(explanation.class_map.values)
    for weight, values in zip(centered, explanation.prototype_values, strict=True):
        expected -= weight / explanation.temperature * values  # type: ignore[operator]
    assert explanation.output == "margin"
    assert torch.allclose(explanation.class_map.values, expected, atol=1e-9)


def test_the_class_map_is_that_of_a_game_on_the_logit(explainer: Explainer, pixels: torch.Tensor) -> None:
    """By linearity: few players, so that both can be exact."""
    found = explain(explainer, pixels, players=16, estimator="exact", sources=False, versus=1, target=0)
    x = explainer.preprocessing(pixels)  # type: ignore[misc]

    def difference(images: torch.Tensor) -> torch.Tensor:
        return explainer.model(images) @ torch.tensor([1.0, -1.0, *[0.0] * 6]) / found.temperature

    logit = estimate(Game(difference, x, Players.windows((48, 48), 16), check=False), "exact")
    assert torch.allclose(found.class_map.values, logit.values[0], atol=1e-4)
    assert found.decomposition.total == pytest.approx(float(difference(x[None]).detach()), abs=1e-4)
    assert not found.class_map.undecided.any()


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_is_what_its_name_says(explainer: Explainer, pixels: torch.Tensor, output: str) -> None:
    """Few players, so that all can be exact; whatever is explained, the others come along."""
    found = explainer.explain(pixels, players=16, estimator="exact", sources=False, output=output, target=2)
    x, rival = explainer.preprocessing(pixels), found.rival  # type: ignore[misc]
    assert rival is not None

    def logits(images: torch.Tensor) -> torch.Tensor:
        return explainer.model(images) / found.temperature

    functions = {
        "margin": lambda images: logits(images)[:, 2] - logits(images).mean(1),
        "logit": lambda images: logits(images)[:, 2],
        "versus": lambda images: logits(images)[:, 2] - logits(images)[:, rival],
        "log_probability": lambda images: logits(images).log_softmax(1)[:, 2],
    }
    maps = {found.output: found.class_map, **found.other_maps}
    assert maps.keys() == functions.keys()
    assert found.output == output
    for name, function in functions.items():
        slow = estimate(Game(function, x, Players.windows((48, 48), 16), check=False), "exact")
        assert torch.allclose(maps[name].values, slow.values[0], atol=1e-3), name
        assert maps[name].total == pytest.approx(float(slow.total[0]), abs=1e-3)


def test_closeness_adds_up_to_what_is_explained(explainer: Explainer, pixels: torch.Tensor) -> None:
    """For the target and, in the same quantity, for its rival."""
    for output in ("margin", "logit", "versus"):
        found = explainer.explain(pixels, players=24, budget=96, sources=False, output=output)
        x = explainer.preprocessing(pixels)  # type: ignore[misc]
        with torch.no_grad():
            logits = explainer.model(x[None])[0].double() / found.temperature
        assert found.rival is not None
        assert found.closeness is not None
        assert found.rival_closeness is not None
        for mine, own, other in (
            (found.closeness, found.target, found.rival),
            (found.rival_closeness, found.rival, found.target),
        ):
            less = {"margin": logits.mean(), "logit": torch.tensor(0.0), "versus": logits[other]}[output]
            assert mine.total == pytest.approx(float(logits[own] - less), abs=1e-3)
            assert mine.class_index == own
            owners = explainer.model.prototype_classes[mine.prototypes]
            assert bool((owners == own).all())


def test_a_network_alone_is_not_calibrated(explainer: Explainer) -> None:
    found = Explainer(explainer.model).explain(torch.rand(3, 48, 48), players=24, budget=96, sources=False)
    assert not found.calibrated
    assert found.closeness is None
    assert found.is_unfamiliar is None
    assert found.empty_probabilities is not None


def test_moment_propagation_has_no_log_probability(explainer: Explainer, pixels: torch.Tensor) -> None:
    plan = {"players": 24, "estimator": "dasp", "options": {"sizes": 2}, "sources": False}
    found = explainer.explain(pixels, **plan)  # type: ignore[arg-type]
    assert set(found.other_maps) == {"logit", "versus"}
    with pytest.raises(ProtoPFaithError, match="no rule for a log probability"):
        explainer.explain(pixels, output="log_probability", **plan)  # type: ignore[arg-type]


def test_moment_path_takes_the_shown_prototypes_alone(explainer: Explainer, pixels: torch.Tensor) -> None:
    """A backward pass for each of hundreds of prototypes would take minutes."""
    model, x = explainer.model, explainer.preprocessing(pixels)  # type: ignore[misc]
    options, seen = {"nodes": 8}, []
    found = explain(
        explainer,
        pixels,
        estimator="moment_path",
        options=options,
        versus=3,
        target=1,
        sources=False,
        progress=lambda *one: seen.append(one),
    )
    shown = [one.prototype for one in found.evidence]
    known = ~found.prototype_values.isnan().any(1)
    assert sorted(shown) == torch.where(known)[0].tolist() == [2, 3, 6, 7]
    game = Game(model.distances, x, Players.windows((48, 48), 16))
    everything = estimate(game, "moment_path", **options)  # type: ignore[arg-type]
    for one in found.evidence:
        assert torch.allclose(one.test.values, everything.values[one.prototype], rtol=1e-3, atol=1e-5)
        assert one.test.total == pytest.approx(float(everything.total[one.prototype]), abs=1e-5)
    assert found.temperature is not None
    row = class_row(model, 1, 3).double() / found.temperature
    weighted = weighted_values(model, everything.values, row)
    assert torch.allclose(found.class_map.values, weighted, rtol=1e-3, atol=1e-4)
    assert seen[-1] == ("test image", 10, 10)  # nodes, and F at both ends


def test_dasp_tells_how_far_it_has_got(explainer: Explainer, pixels: torch.Tensor) -> None:
    seen: list[tuple[str, int, int]] = []
    options = {"sizes": 2, "batch_size": 6}
    plan = {"players": 24, "estimator": "dasp", "options": options, "sources": False}
    explain(explainer, pixels, progress=lambda *one: seen.append(one), **plan)  # type: ignore[arg-type]
    passes = [one for one in seen if one[2] == 2 * 2 * 4]
    assert [done for _, done, _ in passes[:3]] == [6, 12, 16]


def test_another_class_and_two_classes(explainer: Explainer, pixels: torch.Tensor) -> None:
    name = explainer.model.class_names[5]
    other = explain(explainer, pixels, target=name, budget=96, sources=False)
    assert other.target == 5
    both = explain(explainer, pixels, target=5, versus=2, budget=96, sources=False)
    assert [one.class_index for one in both.evidence] == [5, 5, 2, 2]
    assert both.title.endswith(f" {name} and not {explainer.model.class_names[2]}?")
    row = class_row(explainer.model, 5, 2) / both.temperature  # type: ignore[operator]
    assert both.evidence[2].weight == pytest.approx(float(row[both.evidence[2].prototype]))


def test_maps_show_similarity_in_any_geometry(explainer: Explainer, pixels: torch.Tensor) -> None:
    picture = to_pil(pixels).resize((100, 60))
    found = explain(explainer, picture, budget=96, sources=False, players=24)
    one = found.evidence[0].test
    assert torch.equal(one.map(), -one.players.to_map(one.values))
    assert torch.equal(found.class_map.map(), found.class_map.players.to_map(found.class_map.values))
    large = found.original_map(one)
    assert large.shape == (60, 100)
    for player, (y, x) in enumerate([(5, 5), (5, 95), (55, 5), (55, 95)]):
        assert float(large[y, x]) == float(one.evidence[player])


def test_precision_is_that_of_the_outputs_asked_for(explainer: Explainer, pixels: torch.Tensor) -> None:
    found = explain(explainer, pixels, players=24, precision=0.2, sources=False)
    assert found.reached
    assert found.precision <= 0.2
    rows = [one.test for one in found.evidence] + [found.class_map]
    errors = [float(r.standard_errors.square().mean().sqrt() / r.values.square().mean().sqrt()) for r in rows]
    assert found.precision == pytest.approx(max(errors), rel=1e-2)
    hopeless = explain(explainer, pixels, players=8, precision=1e-6, budget=128, sources=False)
    assert not hopeless.reached
    assert hopeless.evaluations <= 128


def test_a_coarse_answer_comes_first(explainer: Explainer, pixels: torch.Tensor) -> None:
    quick: list[Explanation] = []
    stages: set[str] = set()
    final = explain(
        explainer,
        pixels,
        players=4,
        budget=600,
        sources=False,
        on_coarse=quick.append,
        progress=lambda stage, done, expected: stages.add(stage),
    )
    assert len(quick) == 1
    assert quick[0].coarse
    assert len(quick[0].class_map.values) == 49 < len(final.class_map.values)
    assert not final.coarse
    assert stages == {"coarse answer", "test image"}


def test_a_second_baseline_and_how_far_it_agrees(explainer: Explainer, pixels: torch.Tensor) -> None:
    same = explain(explainer, pixels, players=24, budget=96, sources=False, second_baseline="color:0").second
    assert same is not None
    assert same.class_agreement.correlation == pytest.approx(1)
    other = explain(explainer, pixels, players=24, budget=96, sources=False, second_baseline="blur:3").second
    assert other is not None
    assert other.baseline == "blur (sigma 3)"
    assert -1 <= other.class_agreement.correlation < 1
    assert set(other.prototype_agreement) == set(same.prototype_agreement)


def test_log_similarity_plays_on_the_logit_and_refuses_weighted_maps(pixels: torch.Tensor) -> None:
    torch.manual_seed(0)
    model = ProtoPNet("small", 3, 2, 8, similarity="log").eval()
    x = torch.randn(3, 48, 48)
    found = explain(model, x, players=16, estimator="exact", sources=False)
    target = found.target
    logit = estimate(Game(lambda images: model(images)[:, target], x, Players.windows((48, 48), 16)), "exact")
    assert torch.allclose(found.class_map.values, logit.values[0], atol=1e-4)
    log_p = model(x[None]).detach().double().log_softmax(1)[0]
    assert found.decomposition.total == pytest.approx(float(log_p[target]), abs=1e-5)
    with pytest.raises(ProtoPFaithError, match="no weighted sum"):
        weighted_values(model, found.prototype_values, class_row(model, target))


def test_players_of_other_kinds(explainer: Explainer, pixels: torch.Tensor) -> None:
    assert len(explain(explainer, pixels, players="12", budget=96, sources=False).class_map.values) == 16
    assert (
        len(explain(explainer, pixels, players="superpixels:6", budget=96, sources=False).class_map.values)
        > 1
    )
    labels = torch.zeros(48, 48, dtype=torch.long)
    labels[10:30, 10:30] = 1
    masked = explain(explainer, pixels, players=labels, budget=96)
    assert len(masked.class_map.values) == 2
    assert (
        masked.evidence[0].source_side is not None
    )  # whose regions are windows, not the mask of another image
    assert len(masked.evidence[0].source_side.regions.values) == 9


def test_channels_as_players(explainer: Explainer, pixels: torch.Tensor, tmp_path: Path) -> None:
    """Maps, figures, reports and files have all channels in them."""
    players = Players.windows(pixels.shape[-2:], 24, channels=3)
    found = explain(explainer, pixels, players=players, estimator="exact")
    mine = found.class_map
    assert len(mine.values) == 12
    assert float(mine.map().sum()) / 24**2 == pytest.approx(mine.total, rel=1e-4)
    whole = explain(explainer, pixels, players=24, estimator="exact")
    assert float(whole.class_map.map().sum()) == pytest.approx(float(mine.map().sum()), rel=1e-4)
    page = found.report(tmp_path / "report.html").read_text()
    shown = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[0])
    assert sum(shown["maps"][0]["values"]) == pytest.approx(mine.total, rel=1e-3)
    found.figure(path=tmp_path / "figure.svg")
    text, _ = found.save(tmp_path / "saved")
    assert torch.equal(load(text).class_map.map(), mine.map())


def test_deterministic_estimators_have_no_standard_errors(explainer: Explainer, pixels: torch.Tensor) -> None:
    found = explain(
        explainer, pixels, players=24, estimator="moment_path", options={"nodes": 4}, sources=False
    )
    assert found.method == "moment_path"
    assert not found.class_map.errors_known
    assert not found.class_map.undecided.any()


def test_bad_input(explainer: Explainer, pixels: torch.Tensor) -> None:
    model, one = explainer.model, {"sources": False, "budget": 96}
    cases = [
        (explainer, Path("nowhere.png"), {}, "no image at"),
        (explainer, pixels, {"target": "Sparow"}, "no class 'Sparow'"),
        (explainer, pixels, {"target": 0, "versus": 0}, "with itself"),
        (explainer, pixels, {"output": "margn"}, "no output 'margn' to explain; did you mean 'margin'"),
        (explainer, pixels, {"output": "logit", "versus": 1}, "leave out one of them"),
        (explainer, pixels, {"players": "circles"}, "players 'circles'"),
        (explainer, pixels, {"estimator": "magic"}, "no estimator named 'magic'"),
        (explainer, pixels, {"baseline": "magic"}, "no baseline named 'magic'"),
        (explainer, pixels, {"precision": -1.0}, "precision"),
        *(
            (explainer, pixels, {"estimator": "dasp", "options": {part: 1}}, f"takes no option '{part}'")
            for part in ("stop_after", "checkpoint", "resume")
        ),
        *(
            (explainer, pixels, {"options": {name: 3}}, f"give it as {own}=... beside")
            for name, own in (("seed", "seed"), ("budget", "budget"), ("method", "estimator"))
        ),
        (explainer, pixels, {"players": 3.5}, "players 3.5 are not known"),
        (explainer, pixels.long(), {}, "of type uint8.* or a normalized float"),
        (explainer, torch.randn(1, 48, 48), {}, "3 x height x width"),
        (explainer, 3.5, {}, "a ndarray, not 3.5"),
        (model, pixels, {}, "does not say how images are prepared"),
        (model, torch.rand(3, 48, 48), {"sources": True}, "does not know its training images"),
    ]
    for subject, image, options, message in cases:
        with pytest.raises(ProtoPFaithError, match=message):
            explain(subject, image, **{**one, **options})  # type: ignore[arg-type]
    unprojected = copy.deepcopy(model)
    unprojected.sources = [None] * len(model.sources)
    with pytest.raises(ProtoPFaithError, match=r"has no source image because .* were not projected"):
        explain(
            unprojected,
            pixels,
            budget=96,
            preprocessing=explainer.preprocessing,
            images=explainer.images.sets,
        )  # type: ignore[union-attr]


def test_a_network_in_double_precision_is_asked_in_it(explainer: Explainer, pixels: torch.Tensor) -> None:
    preprocessing = explainer.preprocessing
    plain, wide = (
        Explainer(model, preprocessing=preprocessing).explain(pixels, sources=False, budget=96)
        for model in (explainer.model, copy.deepcopy(explainer.model).double())
    )
    assert wide.class_map.total == pytest.approx(plain.class_map.total, abs=1e-5)
    assert wide.probabilities.tolist() == pytest.approx(plain.probabilities.tolist(), abs=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: model.half(), r"are torch\.float16.*give network\.float\(\)"),
        (lambda model: model.bfloat16(), r"are torch\.bfloat16"),
        (lambda model: model.to("meta"), "weights without numbers"),
    ],
)
def test_a_network_without_the_digits_is_one_sentence(explainer: Explainer, change, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        Explainer(change(copy.deepcopy(explainer.model)))


@pytest.mark.parametrize("option", ["device", "preprocessing", "images"])
def test_what_an_explainer_has_already_is_not_given_beside_it(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path, option: str
) -> None:
    images = explainer.images
    assert images is not None
    given = {"device": "cpu", "preprocessing": explainer.preprocessing, "images": images.sets}[option]
    for call in (
        lambda **more: explain(explainer, pixels, budget=96, **more),
        lambda **more: explain_files(explainer, [], tmp_path / "out", budget=96, **more),
        lambda **more: explain_prototypes(explainer, budget=96, **more),
    ):
        with pytest.raises(ProtoPFaithError, match=rf"takes {option}=\.\.\. when it is made"):
            call(**{option: given})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("images", [3, "folder", ..., ["folder"], {"train": []}])
def test_images_of_another_kind_are_one_sentence(explainer: Explainer, images: object) -> None:
    with pytest.raises(ProtoPFaithError, match="The images must be an ImageData, an ImageSet or a list"):
        Explainer(explainer.model, images=images)  # type: ignore[arg-type]


def test_prototypes_take_no_argument_that_they_do_not_know(explainer: Explainer) -> None:
    with pytest.raises(TypeError, match="player"):
        explain_prototypes(explainer, player=24)


def test_it_walks_through_the_files_as_the_documentation_says(explainer: Explainer, bird_file: Path) -> None:
    tracing = load_script("trace_explain")
    explainer.explain(bird_file, budget=128)
    trace = tracing.traced(lambda: explainer.explain(bird_file, budget=128))
    walked = dict.fromkeys(tracing.file_of(code) for code in trace.walk())
    page = (ROOT / "docs" / "architecture.md").read_text()
    documented = re.findall(r"^\| \d+ \| `(explanation/\w+\.py)` \|", page, re.MULTILINE)
    assert [file for file in walked if file.startswith("explanation/")] == documented


def test_who_is_told_is_a_function_also_where_nothing_is_told(
    explainer: Explainer, pixels: torch.Tensor
) -> None:
    for name in ("progress", "on_coarse"):
        with pytest.raises(ProtoPFaithError, match=name):
            explainer.explain(pixels, players=24, budget=128, sources=False, **{name: 3})  # type: ignore[arg-type]
