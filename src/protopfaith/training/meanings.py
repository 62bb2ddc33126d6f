"""What every key of a recipe means, in a line each; shown by `protopfaith recipes show`."""

from __future__ import annotations

from typing import Any

import yaml

from protopfaith.training.recipe import Recipe

MEANINGS = {
    "seed": "of all random choices",
    "data": "which images",
    "data.name": "a data set: birds, folder, cub, dogs, rsna, findings, or your own",
    "data.root": "the folder that holds the images",
    "data.size": "height and width that images are brought to; null: the data set's own",
    "data.seed": "of the split into training, validation and test images",
    "data.fold": "0 to 4: the fold to validate on; none: train on everything; null: the data set's default; "
    "auto: the same, but fold 0 where a folder's validation images are too few",
    "data.skip_unreadable": "go on without images that cannot be read",
    "data.options": "whatever else the data set takes",
    "data.bits": "of values in files with more than 8 (12: 0 to 4095); range: each file's own range",
    "data.window": "center and width of the values that are shown; null: as a DICOM header says",
    "data.groups": "what stays in one split (a patient): a CSV file of image and group, names, or none",
    "augmentation": "what may happen to a training image",
    "augmentation.rotation": "largest angle in degrees",
    "augmentation.shear": "largest angle in degrees",
    "augmentation.translation": "largest shift, as a share of the image",
    "augmentation.scale": "smallest and largest factor",
    "augmentation.flip": "probability of a mirror image",
    "augmentation.padding": "what fills the corners: zeros, border or reflection",
    "augmentation.color": "brightness, contrast and saturation change by up to this share",
    "augmentation.size": "height and width of the images trained on; null: as they are",
    "augmentation.hide": "regions that are hidden, so that the network knows what explanations show it",
    "augmentation.hide.share": "of the images; 0: none",
    "augmentation.hide.smallest": "side of a region in pixels",
    "augmentation.hide.largest": "side of a region in pixels",
    "augmentation.hide.baseline": "what stands there: zero (after normalization), blur or color",
    "augmentation.hide.stages": "all, plain (the plain classifier) or prototypes",
    "augmentation.hide.copies": "hide them in copies beside the whole images, see costs.hidden",
    "model": "the network: encoder V, features Z, prototypes Q, classifier F",
    "model.family": "protopnet; prototree, a decision tree over prototypes; xprotonet, for several findings",
    "model.encoder": "its name, see protopfaith encoders",
    "model.weights": "of the encoder: imagenet, the path of a file, or null to start from nothing",
    "model.otherwise": "the encoder to take where the weights imagenet cannot be downloaded; null: none",
    "model.prototypes_per_class": "K",
    "model.prototype_channels": "L, the length of a prototype",
    "model.activation": "of the latent values: relu1 (the paper), sigmoid, relu; unit: vectors of length 1",
    "model.similarity": "what F reads of a distance s: linear (-s, the paper) or log (Chen et al.)",
    "model.initialization": "of prototypes: random, patches of training images, evidence (telling ones)",
    "model.logit_scale": "learn one factor for all logits while F is fixed; it goes into F's weights",
    "model.options": "whatever else the family takes, by name",
    "tree": "of the family prototree",
    "tree.depth": "2^depth leaves; null: one level more than the classes need for a leaf each",
    "tree.prune": "leaves go whose most probable class is at most so much above chance",
    "tree.milestones": "shares of the joint stage at which its rate is halved",
    "costs": "what is minimized beside the cross-entropy",
    "costs.cluster": "lambda 1: every image near some prototype of its class",
    "costs.separation": "lambda 2: every image far from prototypes of other classes",
    "costs.per_prototype": "divide both by the number of prototypes, as the authors' code does",
    "costs.diversity": "prototypes of one class repel each other",
    "costs.individual": "prototypes must classify alone, against idle ones",
    "costs.places": "prototypes of a class at different places of an image, against five on one part",
    "costs.companion": "V keeps its plain classifier, which the prototypes learn from, too",
    "costs.hidden": "of copies with hidden regions, of which it should say what it says of whole images",
    "costs.l1": "on F's weights to prototypes of other classes",
    "costs.label_smoothing": "of the cross-entropy",
    "costs.balanced": "all classes count alike, however many images they have; of findings both answers",
    "costs.occurrence": "of an XProtoNet: how much of the image its occurrence maps fill",
    "costs.consistency": "of an XProtoNet: occurrence maps move with the image",
    "optimization": "AdamW",
    "optimization.batch_size": "images per step, of all devices together",
    "optimization.learning_rate": "the highest; each part has a share of it, see multipliers",
    "optimization.weight_decay": "of V and Z",
    "optimization.multipliers": "each part's share of the learning rate",
    "optimization.multipliers.encoder": "of V",
    "optimization.multipliers.features": "of Z",
    "optimization.multipliers.prototypes": "of Q",
    "optimization.multipliers.classifier": "of F",
    "optimization.multipliers.head": "of the plain classifier, where it is a companion",
    "optimization.clip": "largest norm of a gradient; null: unbounded",
    "optimization.layer_decay": "rate of V's first block as a share of its last one's",
    "schedule": "pre-training, warm-up, then cycles of joint training, projection and classifier",
    "schedule.cycles": "how many at most",
    "schedule.patience": "stop after so many cycles without a better balanced accuracy; null: never",
    "schedule.lost_cycle": "after a cycle without anything better: go_back to the best model, or go_on",
    "schedule.images": "how many training images the epochs are meant for; null: for any number",
    "schedule.pretraining": "V in a plain classifier",
    "schedule.pretraining.epochs": "0: none",
    "schedule.pretraining.learning_rate": "of this stage",
    "schedule.pretraining.weight_decay": "of this stage",
    "schedule.pretraining.rate": "constant, or one_cycle: up and down again",
    "schedule.pretraining.label_smoothing": "of this stage",
    "schedule.pretraining.probe": "start from a linear probe of the encoder as it came, if it has weights",
    "schedule.warmup": "Z and Q alone, at a rising rate",
    "schedule.warmup.epochs": "how many",
    "schedule.warmup.start": "share of the learning rate at the beginning",
    "schedule.warmup.end": "share of the learning rate at the end",
    "schedule.warmup.batch_norm": "of V: train (it follows the batches) or eval (it is fixed)",
    "schedule.joint": "V, Z and Q together",
    "schedule.joint.epochs": "in each cycle",
    "schedule.joint.rate_cycles": "how often the rate goes up and down in a stage",
    "schedule.joint.base": "share of the learning rate where it is lowest",
    "schedule.classifier": "F alone, after prototypes were projected onto training images",
    "schedule.classifier.epochs": "in each cycle",
    "schedule.classifier.rate_cycles": "how often the rate goes up and down in a stage",
    "schedule.classifier.base": "share of the learning rate where it is lowest",
    "schedule.classifier.augment": "train F on augmented images, too; slower",
    "projection": "prototypes become latent vectors of training images",
    "projection.distinct": "no two prototypes of a class on the same image",
    "compute": "where and how fast; may change when a run is resumed",
    "compute.accelerator": "auto, cpu, cuda, mps",
    "compute.devices": "how many, or which",
    "compute.num_nodes": "machines",
    "compute.strategy": "how several devices work together: auto, ddp",
    "compute.precision": "number format: 32-true, bf16-mixed, 16-mixed, or auto",
    "compute.channels_last": "order of numbers in memory; faster on most devices",
    "compute.compile": "the encoder, with torch.compile",
    "compute.graphs": "the encoder's training step as CUDA graphs, on one GPU: auto or never",
    "compute.resident": "keep all images on the device: auto, always or never",
    "compute.workers": "processes that load images where these are not resident",
    "compute.checkpoint_seconds": "time between two checkpoints at least",
    "compute.validate": "in all epochs, or in those with projected prototypes alone",
}


def explained_recipe(recipe: Recipe) -> str:
    """A recipe as YAML, complete, with the meaning of every key.

    >>> print(explained_recipe(Recipe()).splitlines()[0])
    seed: 0  # of all random choices
    """
    return "\n".join(_lines(recipe.to_dict(), ""))


def _lines(values: dict[str, Any], prefix: str) -> list[str]:
    lines = []
    indent = "  " * prefix.count(".")
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and f"{name}." in _PREFIXES:
            lines += [f"{indent}{key}:  # {MEANINGS[name]}", *_lines(value, f"{name}.")]
        else:
            text = yaml.safe_dump(value, default_flow_style=True, width=1_000).strip().removesuffix("\n...")
            lines.append(f"{indent}{key}: {text}  # {MEANINGS[name]}")
    return lines


_PREFIXES = {name[: name.rindex(".") + 1] for name in MEANINGS if "." in name}
