"""What is right for every public name: its arguments, of which a test makes one wrong at a time."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import protopfaith as pf
from protopfaith import (
    conversion,
    data,
    evaluation,
    explanation,
    moments,
    network,
    serve,
    shapley,
    show,
    training,
)
from protopfaith.data import birds
from protopfaith.evaluation import explainers

PACKAGES = (
    pf, birds, conversion, data, evaluation, explainers, explanation, moments, network, serve, shapley, show,
    training,
)  # fmt: skip
Right = dict[str, tuple[Callable[..., Any], dict[str, Any]]]

NOWHERE = "nowhere"  # a run that is not there: whatever comes before it is checked, nothing is computed
REFUSED = frozenset({
    "Attribution.load", "Run", "convert", "explain_bulk", "explain_prototypes", "explain_sources",
    "faithfulness", "load_explanation", "load_function_explanation", "measure_share", "open_bulk", "prune_run",
    "read_foreign", "serve", "summarize", "train_folds", "train_grid", "project",
})  # fmt: skip
"""They need a run, or files: with everything else right, they say that these are not there."""

RESULTS = frozenset({
    "Bird", "Bulk", "Catalog", "ClassPortrait", "Conversion", "Decomposition", "ExplainedOutput", "ExplainerResult",
    "Explanation", "ExternalEvaluation", "ExternalFindings", "Faithfulness", "Finding", "FindingScores",
    "FindingsEvaluation", "ForeignNetwork", "FunctionExplanation", "PartScores", "PartsEvaluation",
    "PrototypeEvidence", "PrototypePortrait", "PruningReport", "RegionValues", "SecondBaseline", "SourceSide",
    "Summary",
})  # fmt: skip
"""What our functions return; nobody makes them."""
LEFT_OUT = {
    "DistanceModel": "a protocol",
    "PrototypeNetwork": "a protocol",
    "ProtoPFaithError": "an exception",
    "train": "it would train; the corpus has it",
    "Trainer": "a base of classes, which `train` makes",
    "fused": "a context manager, which looks at its arguments when it is entered",
    **dict.fromkeys(RESULTS, "a result"),
}


def total(images: torch.Tensor) -> torch.Tensor:
    return images.flatten(1).sum(1)


@cache
def right(folder: Path) -> Right:
    """Public functions, constructors and methods with arguments that are right; files go into `folder`."""
    torch.manual_seed(0)
    return {
        **_shapley(folder),
        **_networks(folder),
        **_data(folder),
        **_evaluation(folder),
        **_explanation(folder),
        **_others(folder),
    }


IMAGE = torch.arange(64.0).reshape(1, 8, 8)


def _game() -> pf.Game:
    return pf.Game(total, IMAGE, 2)


@cache
def _found() -> pf.Attribution:
    return pf.estimate(_game(), budget=200)


def _shapley(folder: Path) -> Right:
    players, found, some = pf.Players.windows((8, 8), 2), _found(), torch.ones(2, 16).bool()
    whole = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    asked = {"game": _game(), "method": "owen", "budget": 200, "precision": None}
    return {
        "Attribution": (pf.Attribution, whole),
        "Attribution.interval": (found.interval, {"level": 0.9}),
        "Attribution.decided": (found.decided, {"rate": 0.1}),
        "Attribution.of_outputs": (found.of_outputs, {"outputs": [0]}),
        "Attribution.save": (found.save, {"path": folder / "a.npz"}),
        "Attribution.load": (pf.Attribution.load, {"path": NOWHERE}),
        "Game": (
            pf.Game,
            {
                "function": total,
                "image": IMAGE,
                "players": 2,
                "baseline": "zero",
                "baseline_options": None,
                "batch_size": 4,
                "memory": 10**8,
                "autocast": None,
                "check": True,
            },
        ),
        "Game.unchecked": (_game().unchecked, {"coalitions": some}),
        "Game.masked": (_game().masked, {"coalitions": some}),
        "Players": (pf.Players, {"labels": torch.zeros(4, 4).long(), "kind": "labels"}),
        "Players.windows": (pf.Players.windows, {"image_size": (8, 8), "size": 2, "channels": None}),
        "Players.superpixels": (
            pf.Players.superpixels,
            {"image": torch.rand(3, 8, 8), "n": 4, "compactness": 10.0, "channels": None},
        ),
        "Players.from_labels": (pf.Players.from_labels, {"labels": [[0, 1], [1, 0]]}),
        "Players.to": (players.to, {"device": "cpu"}),
        "Players.masks": (players.masks, {"coalitions": some}),
        "Players.to_map": (players.to_map, {"values": torch.ones(1, 16)}),
        "estimate": (pf.estimate, {**asked, "seed": 0, "resume": None, "progress": None, "outputs": None}),
        "check_estimate": (shapley.check_estimate, asked),
        "finish": (
            shapley.finish,
            {
                "game": _game(),
                "method": "owen",
                "values": found.values,
                "standard_errors": found.standard_errors,
                "gap": None,
                "evaluations": 3,
                "state": None,
                "wrong_signs": None,
            },
        ),
        "make_baseline": (shapley.make_baseline, {"spec": "zero", "image": IMAGE}),
        "redistribute": (
            shapley.redistribute,
            {"values": torch.ones(1, 4), "variances": torch.ones(1, 4), "total": torch.ones(1)},
        ),
        "relative_error": (
            shapley.relative_error,
            {"values": torch.ones(1, 4), "standard_errors": torch.ones(1, 4), "outputs": None},
        ),
        "Traits": (shapley.Traits, {"description": "guessed", "evaluates": True}),
        "Gaussian": (pf.Gaussian, {"mean": torch.zeros(2), "variance": torch.ones(2), "factors": None}),
        **_random_variables(),
        "rule": (lambda function: moments.rule(function)(total), {"function": total}),
        "ShownAttribution": (show.ShownAttribution, {"attribution": found, "sign": 1, "names": ["sum"]}),
    }


def _random_variables() -> Right:
    """The methods of `Gaussian`, with and without common factors."""
    found: Right = {}
    maps = {"affine": torch.neg, "linear": torch.neg, "squared": torch.abs}
    for kind, factors in (("", None), (" with factors", torch.zeros(1, 2, 3))):
        x = pf.Gaussian(torch.zeros(2, 3), 1.0, factors)
        found |= {
            f"Gaussian.linear_map{kind}": (x.linear_map, {**maps, "reach": None, "key": None}),
            f"Gaussian.scale{kind}": (x.scale, {**maps, "move": None}),
            f"Gaussian.joined{kind}": (pf.Gaussian.joined, {"parts": [x, x], "join": torch.cat}),
            f"Gaussian.each{kind}": (x.each, {"function": torch.flatten}),
            f"Gaussian.become{kind}": (x.become, {"other": pf.Gaussian(x.moments[0]), "operation": "relu_"}),
            f"Gaussian.trusted{kind}": (pf.Gaussian.trusted, {"mean": torch.zeros(2, 3), "factors": factors}),
            f"Gaussian.reshape{kind}": (lambda shape, x=x: x.reshape(shape), {"shape": (3, 2)}),
            f"Gaussian.sum{kind}": (lambda dim, x=x: x.sum(dim), {"dim": 1}),
            f"Gaussian + {kind}": (lambda other, x=x: x + other, {"other": torch.ones(3)}),
            f"Gaussian * {kind}": (lambda other, x=x: x * other, {"other": 2.0}),
            f"Gaussian[]{kind}": (lambda index, x=x: x[index], {"index": 0}),
        }
    return found


@cache
def _model() -> pf.ProtoPNet:
    return pf.ProtoPNet("small", ["cat", "dog"], 2, 8).eval()


def _networks(folder: Path) -> Right:
    families = {
        "ProtoPNet": _model(),
        "ProtoTree": network.ProtoTree("small", ["cat", "dog"], 2, 8).eval(),
        "XProtoNet": network.XProtoNet("small", ["cat", "dog"], 2, 8).eval(),
        "FusedProtoPNet": network.FusedProtoPNet(_model()),
    }
    usual = {
        "encoder": "small",
        "classes": ["a", "b"],
        "prototype_channels": 8,
        "in_channels": 3,
        "weights": None,
    }
    tree, images = families["ProtoTree"], torch.rand(2, 3, 16, 16)
    found: Right = {
        "ProtoPNet": (pf.ProtoPNet, {**usual, "activation": "relu1", "epsilon": None, "layers": None}),
        "ProtoTree": (network.ProtoTree, {**usual, "depth": 2, "tree": None, "layers": None}),
        "XProtoNet": (network.XProtoNet, {**usual, "prototypes_per_class": 2}),
        "FusedProtoPNet": (network.FusedProtoPNet, {"model": _model()}),
        "PatchNetwork": (
            network.PatchNetwork,
            {**usual, "classes": ("a", "b"), "prototype_classes": torch.tensor([0, 1])},
        ),
        "ProtoPNet.keep": (lambda kept: copy.deepcopy(_model()).keep(kept), {"kept": [0, 2]}),
        "ProtoTree.prune_leaves": (copy.deepcopy(tree).prune_leaves, {"above_chance": 0.0}),
        "DistinctPrototypes": (network.DistinctPrototypes, {"groups": ((0, 1),), "per_class": (1,), "total": 2}),
        "PrototypeSource": (network.PrototypeSource, {"image": "a", "row": 0, "column": 0, "sha256": ""}),
        "Route": (network.Route, {"turns": (), "leaf": 0, "leaf_probabilities": torch.ones(1)}),
        "Turn": (network.Turn, {"prototype": 0, "right": True, "probability": 0.5}),
        "build_encoder": (network.build_encoder, {"name": "small", "in_channels": 3, "weights": None}),
        "class_of": (network.class_of, {"network": _model(), "prototype": 0}),
        "distinct_prototypes": (network.distinct_prototypes, {"model": _model(), "tolerance": None}),
        "duplicate_groups": (
            network.duplicate_groups,
            {"prototypes": torch.zeros(2, 8), "classes": torch.zeros(2).long(), "tolerance": 0.0},
        ),
        "equality_tolerance": (network.equality_tolerance, {"channels": 8, "activation": "relu1"}),
        "minimum_over_positions": (network.minimum_over_positions, {"maps": torch.rand(2, 3, 4, 4)}),
        "occurrence_pooling": (
            network.occurrence_pooling,
            {"latent": torch.rand(2, 8, 4, 4), "occurrence": torch.rand(2, 3, 4, 4)},
        ),
        "output_channels": (
            network.output_channels, {"encoder": _model().encoder, "in_channels": 3, "name": None}
        ),
        "probabilities": (network.probabilities, {"logits": torch.rand(2, 2), "outcome": "one"}),
        "prune": (network.prune, {"model": _model(), "keep": [0, 2]}),
        "can_drop": (network.can_drop, {"network": _model()}),
        "save": (network.save, {"model": _model(), "path": folder / "m.safetensors", "metadata": None}),
        "route_of": (network.route_of, {"network": tree, "distances": torch.rand(len(tree.prototypes))}),
        "squared_distances": (
            network.squared_distances, {"z": torch.rand(2, 8, 4, 4), "prototypes": torch.rand(3, 8)}
        ),
        "unit_vectors": (network.unit_vectors, {"z": torch.rand(2, 8, 4, 4)}),
    }  # fmt: skip
    for name in ("adds_up", "check_contract", "outcome_of", "weights_of"):
        found[name] = (getattr(network, name), {"network": _model()})
    network.save(_model(), folder / "right.safetensors")
    for name in ("load", "read_metadata"):
        found[name] = (getattr(network, name), {"path": folder / "right.safetensors"})
    found["prototype_spread"] = (network.prototype_spread, {"model": _model()})
    for name, one in families.items():
        found[f"{name}.distances"] = (one.distances, {"x": images})
        found[f"{name}.logits"] = (one.logits, {"distances": one.distances(images).detach()})
    for name in ("latent", "distance_maps", "forward"):
        found[f"ProtoPNet.{name}"] = (getattr(_model(), name), {"x": images})
    found["ProtoPNet.similarities"] = (_model().similarities, {"distances": torch.rand(2, 4)})
    found["ProtoTree.route"] = (tree.route, {"distances": torch.rand(len(tree.prototypes))})
    return found


@cache
def _set() -> data.ImageSet:
    records = [data.Record("a", 0, "", boxes=((0, 0, 4, 4),)), data.Record("b", 1, "")]
    return data.ImageSet(np.zeros((2, 3, 16, 16), np.uint8), records, ["cat", "dog"])


@cache
def _images() -> data.ImageData:
    return data.ImageData(_set(), _set(), _set(), ("cat", "dog"), "", data.Preprocessing((16, 16)))


def _data(folder: Path) -> Right:
    picture, preprocessing = folder / "right.png", data.Preprocessing((16, 16))
    for number, name in enumerate(("right.png", "other.png")):
        data.contact_sheet(_set(), 1, 1, tile=20 + number).save(folder / name)
    (folder / "table.csv").write_text("file,label\nright.png,cat\n")
    about: dict[str, Any] = {"path": "a", "group": "", "about": {"sex": "F"}, "findings": (0, 1)}
    marked = {**about, "boxes": ((0, 0, 1, 1),), "points": {"eye": (0.0, 1.0)}}
    entries = (data.Entry("right.png", "cat"), data.Entry("other.png", "dog"))
    found: Right = {
        "Augmentation": (data.Augmentation, {"rotation": 1.0, "scale": (0.9, 1.1), "flip": 0.5, "size": (8, 8)}),
        "Entry": (data.Entry, {**marked, "label": "b", "split": None}),
        "Record": (data.Record, {**marked, "label": 0, "sha256": ""}),
        "Sample": (data.Sample, {**about, "label": "b"}),
        "External": (
            data.External,
            {"name": "a", "samples": (data.Sample("a", "b"),), "pixels": total, "sha256": str, "notes": ()},
        ),
        "ImageData": (
            data.ImageData,
            {field.name: getattr(_images(), field.name) for field in dataclasses.fields(_images())},
        ),
        "ImageSet": (
            data.ImageSet,
            {"pixels": _set().pixels, "records": _set().records, "classes": ["a", "b"], "rows": None},
        ),
        "ImageSet.split": (_set().split, {"split_of": ["train", "test"]}),
        "ImageSet.with_findings": (_set().with_findings, {"findings": [(0,), (1,)], "names": ["mass"]}),
        "ImageSet.subset": (_set().subset, {"indices": [0]}),
        "Listing": (data.Listing, {"name": "l", "root": folder, "entries": entries, "classes": ("cat", "dog")}),
        "Preparation": (data.Preparation, {"name": "a", "data": _images(), "seconds": 1.0}),
        "Preprocessing": (
            data.Preprocessing,
            {"size": (8, 8), "channels": 1, "mean": (0.5,), "std": (0.2,), "bits": None, "window": None},
        ),
        "Preprocessing.uint8": (preprocessing.uint8, {"image": torch.zeros(3, 9, 9, dtype=torch.uint8)}),
        "Preprocessing.normalize": (preprocessing.normalize, {"pixels": torch.zeros(2, 3, 8, 8)}),
        "Preprocessing.denormalize": (preprocessing.denormalize, {"images": torch.zeros(2, 3, 8, 8)}),
        "Preprocessing.from_dict": (data.Preprocessing.from_dict, {"values": preprocessing.to_dict()}),
        "as_finding": (data.as_finding, {"data": _images(), "positive": "dog"}),
        "as_size": (data.as_size, {"size": 8, "default": 9}),
        "augment": (
            data.augment,
            {
                "pixels": torch.zeros(2, 3, 8, 8),
                "augmentation": data.Augmentation(flip=0.5),
                "generator": torch.Generator(),
            },
        ),
        "contact_sheet": (
            data.contact_sheet, {"images": _set(), "rows": 1, "columns": 1, "tile": 16, "boxes": True, "seed": 0}
        ),
        "defining_parts": (data.defining_parts, {"species": "Great Tukka"}),
        "draw_bird": (
            birds.draw_bird, {"species": "Great Tukka", "rng": np.random.default_rng(0), "size": 16}
        ),
        "draw_birds": (
            birds.draw_birds, {"counts": {"train": 1, "validation": 0, "test": 1}, "seed": 0, "size": 16}
        ),
        "load_birds": (
            birds.load_birds,
            {"root": None, "size": 16, "seed": 0, "fold": None, "skip_unreadable": False, "train": 8, "test": 8},
        ),
        "existing_folder": (data.existing_folder, {"root": folder, "name": "a"}),
        "finding_part": (data.finding_part, {"name": "giant beak"}),
        "load_data": (data.load_data, {"name": "birds", "size": 16, "seed": 0, "fold": None, "train": 8, "test": 8}),
        "load_external": (data.load_external, {"data": str(folder / "table.csv"), "preprocessing": preprocessing, "root": folder}),
        "load_listing": (
            data.load_listing,
            {
                "listing": data.Listing("l", folder, entries, ("cat", "dog")),
                "split": lambda known: ["train", "train"],
                "preprocessing": preprocessing,
                "skip_unreadable": False,
                "split_name": "x",
            },
        ),
        "official_split": (data.official_split, {"known": [], "fold": None, "seed": 0}),
        "options_of": (data.options_of, {"name": "birds"}),
        "prepare": (data.prepare, {"name": "birds", "size": 16, "train": 8, "test": 8}),
        "read_image": (data.read_image, {"path": picture}),
    }  # fmt: skip
    for name in ("image", "sha256", "shows", "boxes", "box", "points", "mask", "foreground"):
        found[f"ImageSet.{name}"] = (getattr(_set(), name), {"index": 0})
    return found


def _evaluation(folder: Path) -> Right:
    players, image = pf.Players.windows((16, 16), 8), torch.rand(3, 16, 16)
    options = evaluation.Options(players, budget=66)
    subject = {"model": _model(), "image": image, "prototypes": [0, 1], "options": options}
    judged = {"explainer": evaluation.EXPLAINERS["random"], **subject}
    labels, preprocessing = torch.tensor([0, 1, 0, 1]), data.Preprocessing((16, 16))
    elsewhere = data.External(
        "clinic",
        (data.Sample("a", "cat", findings=(1, 0)), data.Sample("b", "dog", findings=(0, 1))),
        _set().image,
        str,
    )
    asked = {
        "preprocessing": preprocessing,
        "external": elsewhere,
        "resamples": 10,
        "seed": 0,
        "batch_size": 2,
    }
    findings = network.XProtoNet("small", ["cat", "dog"], 2, 8).eval()
    known = _set().with_findings([(0, 1), (1, 0)], ["cat", "dog"])
    explained = explainers.from_attribution(_found())
    birds = data.load_data("birds", size=16, train=8, validation=0, test=8)
    drawn = evaluation.bootstrap(torch.rand(4, 2), labels, resamples=10)
    curves = torch.rand(2, 11)
    found: Right = {
        "AxiomCheck": (evaluation.AxiomCheck, {"axiom": "a", "violation": 0.0, "allowed": 1.0}),
        "Bootstrap": (
            evaluation.Bootstrap, {"values": {}, "draws": {}, "images": 1, "groups": 1, "certain": {}}
        ),
        "Bootstrap.interval": (drawn.interval, {"score": "accuracy"}),
        "Explained": (evaluation.Explained, {"maps": torch.rand(1, 8, 8), "shares": True, "regions": None}),
        "Explained.values": (explained.values, {"players": _found().players}),
        "Explained.standard_errors": (explained.standard_errors, {"players": _found().players}),
        "Interval": (evaluation.Interval, {"value": 1.0, "low": 0.0, "high": 2.0}),
        "Options": (evaluation.Options, {"players": players, "baseline": "zero", "budget": 66, "noise": 0.1}),
        "Truth": (evaluation.Truth, {"halves": torch.rand(2, 1, 4), "evaluations": 3}),
        "TruthAgreement": (
            evaluation.TruthAgreement,
            {"pearson": torch.rand(1), "spearman": torch.rand(1), "relative_error": torch.rand(1)},
        ),
        "aopc": (evaluation.aopc, {"curves": curves, "up_to": 0.5}),
        "insertion_score": (evaluation.insertion_score, {"curves": curves, "up_to": 0.5}),
        "paper_aopc": (evaluation.paper_aopc, {"curves": curves, "classes": 2, "prototypes_per_class": 2.0}),
        "bootstrap": (
            evaluation.bootstrap,
            {"logits": torch.rand(4, 2), "labels": labels, "groups": list("aabb"), "resamples": 10, "seed": 0},
        ),
        "check_axioms": (evaluation.check_axioms, {**judged, "axioms": None, "tolerance": 0.01}),
        "compare_with_truth": (
            evaluation.compare_with_truth, {"values": torch.rand(1, 4), "truth": torch.rand(1, 4)}
        ),
        "default_explainers": (evaluation.default_explainers, {}),
        "evaluate_external": (
            evaluation.evaluate_external, {**asked, "model": _model(), "seen": (), "temperature": 1.0}
        ),
        "evaluate_external_findings": (
            evaluation.evaluate_external_findings, {**asked, "model": findings, "reference": None, "seen": ()}
        ),
        "evaluate_findings": (
            evaluation.evaluate_findings,
            {"model": findings, "images": known, "preprocessing": preprocessing, "batch_size": 2, "resamples": 9},
        ),
        "evaluate_parts": (
            evaluation.evaluate_parts,
            {
                "model": pf.ProtoPNet("small", birds.classes, 1, 8).eval(),
                "preprocessing": birds.preprocessing,
                "images": birds.test,
                "explainers": ["protopnet"],
                "classes": 1,
                "budget": 40,
            },
        ),
        "faithfulness": (pf.faithfulness, {"run": NOWHERE, "prototypes": 1, "budget": 40}),
        "measure_share": (evaluation.measure_share, {"run": NOWHERE, "shard": (1, 1), "prototypes": 1}),
        "judge_findings": (
            evaluation.judge_findings,
            {
                "probabilities": torch.rand(4, 1),
                "labels": labels[:, None],
                "names": ["a"],
                "thresholds": [0.5],
                "resamples": 9,
                "raw": torch.rand(4, 1),
            },
        ),
        "prototype_health": (evaluation.prototype_health, {"model": _model(), "batches": [image[None]]}),
        "randomization": (evaluation.randomization, {**judged, "seed": 0}),
        "stability": (evaluation.stability, {**judged, "seed": 0, "noise": 0.05}),
        "removal_curves": (
            evaluation.removal_curves,
            {
                "function": lambda images: images.sum((1, 2, 3))[:, None],
                "images": torch.rand(2, 1, 4, 4),
                "ranks": torch.arange(16).reshape(1, 4, 4).expand(2, 4, 4),
                "outputs": torch.zeros(2).long(),
                "baselines": torch.zeros(2, 1, 4, 4),
                "steps": 3,
                "batch_size": 2,
            },
        ),
        "removal_ranks": (evaluation.removal_ranks, {"importance": torch.rand(16, 16), "regions": players}),
        "share_inside": (
            evaluation.share_inside, {"maps": torch.rand(2, 8, 8), "mask": torch.ones(8, 8).bool()}
        ),
        "true_values": (evaluation.true_values, {"game": _game(), "budget": 300, "seed": 0}),
        "Prepared": (explainers.Prepared, {"network": _model()}),
        "density": (explainers.density, {"values": torch.rand(1, 4), "players": players}),
        "from_attribution": (explainers.from_attribution, {"attribution": _found()}),
        "game_of": (explainers.game_of, {**subject, "check": False}),
        "network_of": (explainers.network_of, {"model": _model()}),
        "selected_distances": (explainers.selected_distances, {"model": _model(), "prototypes": [0]}),
    }  # fmt: skip
    for name in ("saliency", "protopnet", "random"):
        found[f"explainers.{name}"] = (
            lambda name=name, **given: evaluation.EXPLAINERS[name](*given.values()), subject
        )  # fmt: skip
    return found


def _explanation(folder: Path) -> Right:
    preprocessing, distances = data.Preprocessing((16, 16)), torch.rand(4)
    explainer = pf.Explainer(_model(), preprocessing=preprocessing)
    quick = {"players": 8, "budget": 40, "sources": False}
    image = torch.zeros(3, 16, 16, dtype=torch.uint8)
    why = explainer.explain(image, **quick)
    plain = pf.explain_function(total, IMAGE, players=4, budget=40)
    captum = explanation.ShapleyAttribution(lambda images: images.flatten(1)[:, :2], 4, budget=40)
    agreed = {"correlation": 0.5, "same_sign": 0.5, "compared": 2}
    asked = {"image": image, "target": "cat", "versus": "dog", "name": "a", "mask": None, **quick}
    return {
        "Agreement": (explanation.Agreement, agreed),
        "Batch": (explanation.Batch, {"cases": (), "failures": (), "index": folder}),
        "Explainer": (
            pf.Explainer, {"model": _model(), "preprocessing": preprocessing, "images": None, "device": "cpu"}
        ),
        "Explainer.explain": (explainer.explain, asked),
        "Explainer.open": (explainer.open, {"image": image, "name": "a"}),
        "Explanation.save": (why.save, {"stem": folder / "why"}),
        "Explanation.report": (why.report, {"path": folder / "why.html"}),
        "Explanation.original_map": (why.original_map, {"regions": None}),
        "Failure": (explanation.Failure, {"path": folder, "message": "x"}),
        "FunctionExplanation.save": (plain.save, {"stem": folder / "plain"}),
        "FunctionExplanation.figure": (plain.figure, {"path": folder / "plain.png"}),
        "FunctionExplanation.report": (plain.report, {"path": folder / "plain.html"}),
        "RegionValues.map": (why.class_map.map, {"size": (8, 8)}),
        "RegionValues.share_inside": (why.class_map.share_inside, {"mask": torch.ones(16, 16).bool()}),
        "Settings": (
            explanation.Settings,
            {"players": 8, "budget": 40, "baseline": "zero", "options": {}, "autocast": None, "output": None},
        ),
        "Settings.of": (explanation.Settings.of, {"settings": None, "players": 8}),
        "Settings.on": (explanation.Settings().on, {"device": "cpu", "size": (8, 8)}),
        "ShapleyAttribution": (explanation.ShapleyAttribution, {"forward_func": total, "players": 4, "seed": 0}),
        "ShapleyAttribution.attribute": (
            captum.attribute,
            {"inputs": torch.rand(1, 3, 8, 8), "baselines": None, "target": 0, "feature_mask": None},
        ),
        "SourcePart": (explanation.SourcePart, {"path": "a", "pixels": image, "box": (0, 0, 1, 1)}),
        "class_row": (explanation.class_row, {"model": _model(), "target": 0, "versus": 1}),
        "crop_box": (explanation.crop_box, {"activation": torch.rand(8, 8), "percentile": 95.0}),
        "decompose": (
            explanation.decompose,
            {"model": _model(), "distances": distances, "target": 0, "versus": 1, "temperature": 1.0},
        ),
        "explain": (pf.explain, {"model": _model(), "preprocessing": preprocessing, "image": image, **quick}),
        "explain_bulk": (
            explanation.explain_bulk, {"model": NOWHERE, "inputs": ["a.png"], "folder": folder / "bulk"}
        ),
        "explain_files": (
            explanation.explain_files,
            {"model": explainer, "paths": ["a.png"], "sources": False, "folder": folder / "files", "figures": (), "mask": None},
        ),
        "explain_function": (
            pf.explain_function,
            {"function": total, "image": IMAGE, "outputs": None, "names": None, "players": 4, "budget": 40},
        ),
        "explain_prototypes": (explanation.explain_prototypes, {"model": NOWHERE, "nearest": 1}),
        "explain_sources": (explanation.explain_sources, {"model": NOWHERE, "shard": (1, 1)}),
        "load_explanation": (explanation.load_explanation, {"path": NOWHERE}),
        "load_function_explanation": (explanation.load_function_explanation, {"path": NOWHERE}),
        "open_bulk": (explanation.open_bulk, {"folder": NOWHERE}),
        "paper_scores": (explanation.paper_scores, {"model": _model(), "distances": distances, "target": 0}),
        "protopnet_maps": (
            explanation.protopnet_maps,
            {"model": _model(), "distance_maps": torch.rand(4, 3, 3), "size": (8, 8), "interpolation": "cubic"},
        ),
        "quantus_explainer": (
            explanation.quantus_explainer,
            {"model": lambda x: x.flatten(1)[:, :2], "inputs": torch.rand(1, 3, 8, 8), "targets": [0], "players": 4},
        ),
        "summarize": (explanation.summarize, {"bulk": None, "against": None}),
    }  # fmt: skip


def _others(folder: Path) -> Right:
    recipe = training.load_recipe("birds")
    parts = {field.name: getattr(recipe, field.name) for field in dataclasses.fields(recipe)}
    rule = {"threshold": 0.5, "absent_below": 0.4, "present_above": 0.6, "present": 5, "absent": 5}
    trained = {"recipe": recipe, "folder": folder / "run", "at_once": 1}
    return {
        "FindingRule": (training.FindingRule, rule),
        "FindingRule.verdict": (training.FindingRule(**rule).verdict, {"probability": 0.3}),
        "Recipe": (training.Recipe, parts),
        "Recipe.save": (recipe.save, {"path": folder / "recipe.yaml"}),
        "Run": (pf.Run, {"folder": NOWHERE, "root": None}),
        "build_model": (training.build_model, {"recipe": recipe, "data": _images()}),
        "count_distinct": (training.count_distinct, {"model": _model()}),
        "grid_names": (training.grid_names, {}),
        "recipe_names": (training.recipe_names, {}),
        "load_grid": (training.load_grid, {"name_or_path": "cub"}),
        "load_recipe": (training.load_recipe, {"name_or_path": "birds", "overrides": ["seed=1"]}),
        "recipe_summary": (training.recipe_summary, {"name": "birds"}),
        "project": (
            training.project,
            {
                "model": _model(),
                "batches": [],
                "images": _set(),
                "preprocessing": data.Preprocessing((16, 16)),
            },
        ),
        "prune_run": (training.prune_run, {"run": None, "folder": folder / "pruned", "drop": [0]}),
        "train_folds": (training.train_folds, {**trained, "folds": [99]}),
        "train_grid": (training.train_grid, {"name_or_path": NOWHERE, "folder": folder / "grid"}),
        "Format": (conversion.Format, {"summary": "a", "looks_like": bool, "read": total}),
        "SourceHint": (conversion.SourceHint, {"image": 1, "row": None, "column": None}),
        "convert": (
            pf.convert,
            {"path": NOWHERE, "out": folder / "converted", "size": None, "epsilon": None},
        ),
        "read_foreign": (conversion.read_foreign, {"path": NOWHERE}),
        "serve": (serve.serve, {"runs": [NOWHERE], "port": 0, "token": None, "device": "cpu", "keep": False}),
    }
