"""The sections of a recipe: what each key means and may hold, and what it is where nobody says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from protopfaith.arguments import LARGEST_SEED, shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.typed import section, setting

AT_LEAST_ZERO = {"at_least": 0}
AT_LEAST_ONE = {"at_least": 1}
SEED = {"at_least": 0, "at_most": LARGEST_SEED}
COUNT = {"at_least": 1, "at_most": 100_000}
EPOCHS = {"at_least": 0, "at_most": 100_000}
RATE = {"above": 0, "at_most": 1e30}
SHARE = {"above": 0, "at_most": 1}
DEVICES = r"auto|-1|\d{1,9}|\[?\d{1,9}(, *\d{1,9})*,?\]?"  # as Fabric takes them


@dataclass(frozen=True)
class DataRecipe:
    """Which images: a name from `protopfaith.data.DATASETS` and how it is split."""

    name: str = setting("birds", "a data set: birds, folder, cub, dogs, rsna, findings, or your own")
    root: str | None = setting(None, "the folder that holds the images")
    size: tuple[int, int] | None = setting(
        None, "height and width that images are brought to; null: the data set's own"
    )
    seed: int = setting(0, "of the split into training, validation and test images", **SEED)
    fold: int | str | None = setting(
        None,
        "0 to 4: the fold to validate on; none: train on everything; null: the data set's default; "
        "auto: the same, but fold 0 where a folder's validation images are too few",
    )
    skip_unreadable: bool = setting(False, "go on without images that cannot be read")
    options: dict[str, Any] = section(dict, "whatever else the data set takes")
    bits: int | str | None = setting(
        None, "of values in files with more than 8 (12: 0 to 4095); range: each file's own range"
    )
    window: tuple[float, float] | None = setting(
        None, "center and width of the values that are shown; null: as a DICOM header says"
    )
    groups: str | None = setting(
        None, "what stays in one split (a patient): a CSV file of image and group, names, or none"
    )


@dataclass(frozen=True)
class ModelRecipe:
    """V, Z, Q and F."""

    family: str = setting(
        "protopnet", "protopnet; prototree, a decision tree over prototypes; xprotonet, for several findings"
    )
    encoder: str = setting("small", "its name, see protopfaith encoders")
    weights: str | None = setting(
        None, "of the encoder: imagenet, the path of a file, or null to start from nothing"
    )
    otherwise: str | None = setting(
        None, "the encoder to take where the weights imagenet cannot be downloaded; null: none"
    )
    prototypes_per_class: int = setting(5, "K", **COUNT)
    prototype_channels: int = setting(128, "L, the length of a prototype", **COUNT)
    activation: str = setting(
        "relu1", "of the latent values: relu1 (the paper), sigmoid, relu; unit: vectors of length 1"
    )
    similarity: str = setting(
        "linear", "what F reads of a distance s: linear (-s, the paper) or log (Chen et al.)"
    )
    # "patches" are far apart; "evidence" takes them among those that the plain classifier finds most telling.
    initialization: Literal["random", "patches", "evidence"] = setting(
        "random", "of prototypes: random, patches of training images, evidence (telling ones)"
    )
    logit_scale: bool = setting(
        False, "learn one factor for all logits while F is fixed; it goes into F's weights"
    )
    options: dict[str, Any] = section(dict, "whatever else the family takes, by name")


@dataclass(frozen=True)
class TreeRecipe:
    """The tree of a ProtoTree."""

    depth: int | None = setting(
        None,
        "2^depth leaves; null: one level more than the classes need for a leaf each",
        at_least=1,
        at_most=11,
    )
    prune: float = setting(
        0.02, "leaves go whose most probable class is at most so much above chance", at_least=0, at_most=1
    )
    milestones: tuple[float, ...] = setting(
        (0.6, 0.75, 0.85, 0.95),
        "shares of the joint stage at which its rate is halved",
        at_least=0,
        at_most=1,
    )


@dataclass(frozen=True)
class PretrainingRecipe:
    """The plain classifier (encoder, average pooling, linear) that V is trained in before."""

    epochs: int = setting(0, "0: none", **EPOCHS)
    learning_rate: float = setting(1e-3, "of this stage", **RATE)
    weight_decay: float = setting(0.0, "of this stage", **AT_LEAST_ZERO)
    rate: Literal["constant", "one_cycle"] = setting("constant", "constant, or one_cycle: up and down again")
    label_smoothing: float = setting(0.0, "of this stage", at_least=0, at_most=1)
    # V then moves as far from the probe as the validation images want.
    probe: bool = setting(False, "start from a linear probe of the encoder as it came, if it has weights")


@dataclass(frozen=True)
class WarmupRecipe:
    """Z and Q alone, the rate rising linearly with every iteration."""

    epochs: int = setting(10, "how many", **EPOCHS)
    start: float = setting(0.1, "share of the learning rate at the beginning", **SHARE)
    end: float = setting(0.2, "share of the learning rate at the end", **SHARE)
    # V's weights are frozen either way; with "train" its batch norm still follows the batches (Chen et al.).
    batch_norm: Literal["train", "eval"] = setting(
        "train", "of V: train (it follows the batches) or eval (it is fixed)"
    )


@dataclass(frozen=True)
class CyclicRecipe:
    """A stage with triangular learning rates between `base` (a fraction) and 1 times the learning rate."""

    epochs: int = setting(5, "in each cycle", **COUNT)
    rate_cycles: int = setting(2, "how often the rate goes up and down in a stage", **COUNT)
    base: float = setting(0.2, "share of the learning rate where it is lowest", **SHARE)


@dataclass(frozen=True)
class ClassifierRecipe(CyclicRecipe):
    """The stage of F. Without augmentation its inputs never change: distances are computed once per stage."""

    epochs: int = setting(10, "in each cycle", **COUNT)
    augment: bool = setting(True, "train F on augmented images, too; slower")


@dataclass(frozen=True)
class ScheduleRecipe:
    """Pre-training, warm-up, then `cycles` times: joint (V, Z, Q), projection, classifier (F)."""

    cycles: int = setting(6, "how many at most", **COUNT)
    # The paper stops early but does not say when.
    patience: int | None = setting(
        None, "stop after so many cycles without a better balanced accuracy; null: never", **AT_LEAST_ONE
    )
    # "go_back" halves the rate, too; the paper goes on.
    lost_cycle: Literal["go_back", "go_on"] = setting(
        "go_back", "after a cycle without anything better: go_back to the best model, or go_on"
    )
    # With more images there are fewer epochs, by the square root; with few images F learns at a higher rate.
    images: int | None = setting(
        None, "how many training images the epochs are meant for; null: for any number", **AT_LEAST_ONE
    )
    pretraining: PretrainingRecipe = section(PretrainingRecipe, "V in a plain classifier")
    warmup: WarmupRecipe = section(WarmupRecipe, "Z and Q alone, at a rising rate")
    joint: CyclicRecipe = section(CyclicRecipe, "V, Z and Q together")
    classifier: ClassifierRecipe = section(
        ClassifierRecipe, "F alone, after prototypes were projected onto training images"
    )


@dataclass(frozen=True)
class RateMultipliers:
    """Each part's share of the learning rate."""

    encoder: float = setting(1.0, "of V", **AT_LEAST_ZERO)
    features: float = setting(1.0, "of Z", **AT_LEAST_ZERO)
    prototypes: float = setting(1.0, "of Q", **AT_LEAST_ZERO)
    classifier: float = setting(1.0, "of F", **AT_LEAST_ZERO)
    head: float = setting(1.0, "of the plain classifier, where it is a companion", **AT_LEAST_ZERO)


@dataclass(frozen=True)
class OptimizationRecipe:
    """AdamW."""

    batch_size: int = setting(80, "images per step, of all devices together", at_least=1, at_most=1_000_000)
    learning_rate: float = setting(1e-4, "the highest; each part has a share of it, see multipliers", **RATE)
    weight_decay: float = setting(0.0, "of V and Z", **AT_LEAST_ZERO)
    multipliers: RateMultipliers = section(RateMultipliers, "each part's share of the learning rate")
    clip: float | None = setting(None, "largest norm of a gradient; null: unbounded", above=0)
    # Blocks between follow in equal ratios.
    layer_decay: float = setting(1.0, "rate of V's first block as a share of its last one's", **SHARE)


@dataclass(frozen=True)
class ProjectionRecipe:
    """Prototypes become latent vectors of training images at the start of each classifier stage."""

    distinct: bool = setting(False, "no two prototypes of a class on the same image")


@dataclass(frozen=True)
class ComputeRecipe:
    """Where and how fast; these may change on resume. The first five are those of Lightning Fabric."""

    accelerator: str = setting("auto", "auto, cpu, cuda, mps")
    devices: int | str = setting(1, "how many, or which")
    num_nodes: int = setting(1, "machines", **COUNT)
    strategy: str = setting("auto", "how several devices work together: auto, ddp")
    # "auto" is bf16-mixed on GPUs that know it, 32-true elsewhere.
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "auto"] = setting(
        "32-true", "number format: 32-true, bf16-mixed, 16-mixed, or auto"
    )
    channels_last: bool = setting(False, "order of numbers in memory; faster on most devices")
    compile: bool = setting(False, "the encoder, with torch.compile")
    graphs: Literal["auto", "never"] = setting(
        "auto", "the encoder's training step as CUDA graphs, on one GPU: auto or never"
    )
    # "auto" does where the set, as uint8, takes at most a third of the free memory.
    resident: Literal["auto", "always", "never"] = setting(
        "auto", "keep all images on the device: auto, always or never"
    )
    workers: int = setting(
        4, "processes that load images where these are not resident", at_least=0, at_most=1_000
    )
    checkpoint_seconds: float = setting(0.0, "time between two checkpoints at least", **AT_LEAST_ZERO)
    validate: Literal["all", "projected"] = setting(
        "all", "in all epochs, or in those with projected prototypes alone"
    )

    def __post_init__(self) -> None:
        if not re.fullmatch(DEVICES, str(self.devices)):
            raise ProtoPFaithError(
                f"compute.devices cannot be {shown(self.devices)}; give how many (2), auto for all, or which "
                "ones (0,1)."
            )
