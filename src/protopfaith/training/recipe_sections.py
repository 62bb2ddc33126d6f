"""The sections of a recipe: what each key may hold, and what it is where nobody says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from protopfaith.arguments import LARGEST_SEED, shown
from protopfaith.errors import ProtoPFaithError

AT_LEAST_ZERO = {"at_least": 0}
AT_LEAST_ONE = {"at_least": 1}
SEED = {"at_least": 0, "at_most": LARGEST_SEED}
COUNT = {"at_least": 1, "at_most": 100_000}
EPOCHS = {"at_least": 0, "at_most": 100_000}
RATE = {"above": 0, "at_most": 1e30}
WEIGHT = {"at_least": -1e6, "at_most": 1e6}
POSITIVE = {"above": 0}
SHARE = {"above": 0, "at_most": 1}
DEVICES = r"auto|-1|\d{1,9}|\[?\d{1,9}(, *\d{1,9})*,?\]?"  # as Fabric takes them


@dataclass(frozen=True)
class DataRecipe:
    """Which images: a name from `protopfaith.data.DATASETS` and how it is split."""

    name: str = "birds"
    root: str | None = None
    size: tuple[int, int] | None = None  # height, width; null: the data set's own
    seed: int = field(default=0, metadata=SEED)  # of the split
    # null: the data set's default; "auto": the same, unless it is too small; "none": train on everything
    fold: int | str | None = None
    skip_unreadable: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # whatever else the data set takes
    bits: int | str | None = None  # of values in files with more than 8; "range": each file's own range
    window: tuple[float, float] | None = None  # center and width of what is shown; null: a DICOM header's
    # A CSV file of image and group: a group stays in one split; "names": as file names say; "none".
    groups: str | None = None


@dataclass(frozen=True)
class ModelRecipe:
    """V, Z, Q and F."""

    family: str = "protopnet"  # one of `protopfaith.network.FAMILIES`
    encoder: str = "small"
    weights: str | None = None  # "imagenet", or the path of a file
    otherwise: str | None = None  # the encoder to take where published weights of the first cannot be had
    prototypes_per_class: int = field(default=5, metadata=COUNT)  # K
    prototype_channels: int = field(default=128, metadata=COUNT)  # L
    activation: str = "relu1"
    similarity: str = "linear"
    # "random" (the paper); "patches": on real latent vectors of the class's training images, far apart;
    # "evidence": the same among the patches that the pre-trained plain classifier finds most telling.
    initialization: Literal["random", "patches", "evidence"] = "random"
    # Learn one factor for all logits while F is fixed; at the end of a stage it goes into F's weights.
    logit_scale: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # whatever else the family takes


@dataclass(frozen=True)
class TreeRecipe:
    """The tree of a ProtoTree."""

    # 2^depth leaves; null: one level more than the classes need for a leaf each.
    depth: int | None = field(default=None, metadata={"at_least": 1, "at_most": 11})
    # Before projection leaves go whose most probable class is at most so much above chance.
    prune: float = field(default=0.02, metadata={"at_least": 0, "at_most": 1})
    # Shares of the joint stage at which its rate is halved.
    milestones: tuple[float, ...] = field(
        default=(0.6, 0.75, 0.85, 0.95), metadata={"at_least": 0, "at_most": 1}
    )


@dataclass(frozen=True)
class PretrainingRecipe:
    """The plain classifier (encoder, average pooling, linear) that V is trained in before."""

    epochs: int = field(default=0, metadata=EPOCHS)  # 0: none
    learning_rate: float = field(default=1e-3, metadata=RATE)
    weight_decay: float = field(default=0.0, metadata=AT_LEAST_ZERO)
    rate: Literal["constant", "one_cycle"] = "constant"
    label_smoothing: float = field(default=0.0, metadata={"at_least": 0, "at_most": 1})
    # Start from a linear probe of the encoder as it came, and move V as far from there as the validation
    # images want. Without model.weights V knows nothing yet, and there is no probe.
    probe: bool = False


@dataclass(frozen=True)
class WarmupRecipe:
    """Z and Q alone, the rate rising linearly with every iteration."""

    epochs: int = field(default=10, metadata=EPOCHS)
    start: float = field(default=0.1, metadata=SHARE)  # of the learning rate
    end: float = field(default=0.2, metadata=SHARE)
    # "train": V's batch norm follows the batches though V is frozen (Chen et al.); "eval": it is fixed.
    batch_norm: Literal["train", "eval"] = "train"


@dataclass(frozen=True)
class CyclicRecipe:
    """A stage with triangular learning rates between `base` (a fraction) and 1 times the learning rate."""

    epochs: int = field(default=5, metadata=COUNT)
    rate_cycles: int = field(default=2, metadata=COUNT)
    base: float = field(default=0.2, metadata=SHARE)


@dataclass(frozen=True)
class ClassifierRecipe(CyclicRecipe):
    """The stage of F. Without augmentation its inputs never change: distances are computed once per stage."""

    epochs: int = field(default=10, metadata=COUNT)
    augment: bool = True


@dataclass(frozen=True)
class ScheduleRecipe:
    """Pre-training, warm-up, then `cycles` times: joint (V, Z, Q), projection, classifier (F)."""

    cycles: int = field(default=6, metadata=COUNT)
    # Stop after so many cycles without a better validation balanced accuracy; null: never. (The paper stops
    # early but does not say when.)
    patience: int | None = field(default=None, metadata=AT_LEAST_ONE)
    # After a cycle that brought nothing better, the next starts from the best projected model at half the
    # rate ("go_back"), or from wherever the last one ended ("go_on", as the paper does).
    lost_cycle: Literal["go_back", "go_on"] = "go_back"
    # How many training images the epochs are meant for; with more images there are fewer of them, by the
    # square root, and with few images F learns at a higher rate. null: epochs and rates are as they are.
    images: int | None = field(default=None, metadata=AT_LEAST_ONE)
    pretraining: PretrainingRecipe = PretrainingRecipe()
    warmup: WarmupRecipe = WarmupRecipe()
    joint: CyclicRecipe = CyclicRecipe()
    classifier: ClassifierRecipe = ClassifierRecipe()


@dataclass(frozen=True)
class RateMultipliers:
    """Each part's share of the learning rate."""

    encoder: float = field(default=1.0, metadata=AT_LEAST_ZERO)  # V
    features: float = field(default=1.0, metadata=AT_LEAST_ZERO)  # Z
    prototypes: float = field(default=1.0, metadata=AT_LEAST_ZERO)  # Q
    classifier: float = field(default=1.0, metadata=AT_LEAST_ZERO)  # F
    head: float = field(default=1.0, metadata=AT_LEAST_ZERO)  # of the plain classifier, as companion


@dataclass(frozen=True)
class OptimizationRecipe:
    """AdamW."""

    batch_size: int = field(
        default=80, metadata={"at_least": 1, "at_most": 1_000_000}
    )  # of all devices together
    learning_rate: float = field(default=1e-4, metadata=RATE)
    weight_decay: float = field(default=0.0, metadata=AT_LEAST_ZERO)  # of V and Z only
    multipliers: RateMultipliers = RateMultipliers()
    clip: float | None = field(default=None, metadata=POSITIVE)  # largest gradient norm; null: unbounded
    # The rate of V's first block as a share of its last one's; those between follow in equal ratios.
    layer_decay: float = field(default=1.0, metadata=SHARE)


@dataclass(frozen=True)
class ProjectionRecipe:
    """Prototypes become latent vectors of training images at the start of each classifier stage."""

    distinct: bool = False  # true: no two prototypes of a class on the same image


@dataclass(frozen=True)
class ComputeRecipe:
    """Where and how fast; these may change on resume. The first five are those of Lightning Fabric."""

    accelerator: str = "auto"
    devices: int | str = 1
    num_nodes: int = field(default=1, metadata=COUNT)
    strategy: str = "auto"
    # "auto": bf16-mixed on GPUs that know it, 32-true elsewhere.
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "auto"] = "32-true"
    channels_last: bool = False
    compile: bool = False  # the encoder, with torch.compile
    # The encoder's training step as CUDA graphs, on one GPU: "auto" where that can be, or "never".
    graphs: Literal["auto", "never"] = "auto"
    # The whole set as uint8 on the device: "auto" when it takes at most a third of the free memory.
    resident: Literal["auto", "always", "never"] = "auto"
    workers: int = field(
        default=4, metadata={"at_least": 0, "at_most": 1_000}
    )  # loading processes when it is not resident
    # Write last.safetensors after an epoch when this much time has passed since the last one.
    checkpoint_seconds: float = field(default=0.0, metadata=AT_LEAST_ZERO)
    validate: Literal["all", "projected"] = "all"  # in which epochs

    def __post_init__(self) -> None:
        if not re.fullmatch(DEVICES, str(self.devices)):
            raise ProtoPFaithError(
                f"compute.devices cannot be {shown(self.devices)}; give how many (2), auto for all, or which "
                "ones (0,1)."
            )
