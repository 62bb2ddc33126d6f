"""What the paper reports for its models: tables 1, A1 and A2 of "Keep the Faith" (Wolf et al., 2024)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PaperModel:
    """A row of the paper: balanced accuracies in percent, and AOPC of both explanations.

    AOPC is normalized by C + K + T - 1. The paper does not say its T; its own explanations are DASP with 32
    evaluations for each input feature.
    """

    name: str
    validation: str
    test: str
    aopc_protopnet: float
    aopc_protopfaith: float
    prototypes: int = 100
    """That AOPC is summed over."""


PAPER = {
    ("cub", "resnext50"): PaperModel("CUB ResNeXt50", "72.8 ± 0.5", "72.0 ± 0.6", -0.000446, -3.721184),
    ("cub", "resnet50"): PaperModel("CUB ResNet50", "70.8 ± 1.1", "69.8 ± 0.8", -0.000223, -2.848353),
    ("cub", "wide_resnet50"): PaperModel(
        "CUB Wide-ResNet50", "71.0 ± 0.9", "70.2 ± 0.7", -0.000834, -3.075180
    ),
    ("dogs", "resnext50"): PaperModel("Dogs ResNeXt50", "84.1 ± 0.3", "83.4 ± 0.6", -0.001767, -1.850909),
    ("dogs", "resnet50"): PaperModel("Dogs ResNet50", "81.0 ± 0.6", "80.4 ± 0.5", -0.000516, -3.012445),
    ("dogs", "wide_resnet50"): PaperModel(
        "Dogs Wide-ResNet50", "84.1 ± 1.0", "84.0 ± 0.6", -0.000717, -3.006323
    ),
    ("rsna", "convnet"): PaperModel("RSNA ConvNet", "74.0 ± 10.1", "72.6 ± 10.8", -0.001360, -8.816450, 14),
    ("rsna", "resnet"): PaperModel("RSNA ResNet", "73.7 ± 4.1", "71.9 ± 5.2", -0.000012, -31.912595, 14),
}


def paper_model(data: str, encoder: str) -> PaperModel | None:
    """The paper's model on this data with this encoder, whatever its variant (such as resnet50_v1)."""
    fitting = [key for key in PAPER if key[0] == data and encoder.startswith(key[1])]
    return PAPER[max(fitting, key=lambda key: len(key[1]))] if fitting else None
