"""How `protopfaith train folder` does on data that nobody tuned for, one row for each folder of images.

python benchmarks/carry_over.py FOLDER ... --out runs/carry_over [KEY=VALUE ...]

A row has the validation balanced accuracy of linear probe, plain classifier and ProtoPNet, the test balanced
accuracy of a linear probe and of the ProtoPNet, and the processor time of training. Finished runs are kept:
the same command goes on with those that are missing. Choose settings by the columns of validation only.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet
from protopfaith.evaluation.prediction import classify_set
from protopfaith.training import Run
from protopfaith.training.launch import build_model
from protopfaith.training.probe import fit_probe

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HEAD = (
    "| data | classes, images | probe, plain, ProtoPNet (validation) | probe (test) | ProtoPNet (test) "
    "| distinct | CPU seconds |\n| --- | --- | --- | --- | --- | --- | --- |"
)


def trained(root: Path, folder: Path, overrides: list[str]) -> tuple[Run, float]:
    """The run in `folder`, trained if it is not there, and the processor time that took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if not (folder / "model.safetensors").exists() or not Run(folder).is_finished():
        new = not (folder / "last.safetensors").exists()
        how = ["folder", "--root", str(root), *overrides] if new else ["--resume"]
        command = [sys.executable, "-m", "protopfaith", "train", *how, "--out", str(folder)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(folder, root), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@torch.no_grad()
def features(encoder: torch.nn.Module, images: ImageSet, data: ImageData) -> Tensor:
    batches = torch.arange(len(images)).split(32)
    pixels = (torch.stack([images.image(int(i)) for i in batch]).to(DEVICE) for batch in batches)
    return torch.cat([encoder(data.preprocessing.normalize(batch)).mean((2, 3)).cpu() for batch in pixels])


def probe_on_test(run: Run, data: ImageData) -> float:
    """The test balanced accuracy of a linear probe of the encoder as it came."""
    encoder = build_model(run.recipe(), data).eval().encoder.to(DEVICE)
    train, validation, test = (
        features(encoder, part, data) for part in (data.train, data.validation, data.test)
    )
    judged = (validation, data.validation.labels) if len(validation) else None
    probe = fit_probe(train, data.train.labels, len(data.classes), judged)
    right = (test @ probe.weight.T + probe.bias).argmax(1) == data.test.labels
    per_class = [right[data.test.labels == label].float().mean() for label in data.test.labels.unique()]
    return float(torch.stack(per_class).mean())


def row(name: str, run: Run, seconds: float) -> str:
    data, result = run.data(), run.result()
    values = [result.get(key) for key in ("linear_probe", "plain_classifier", "validation_balanced_accuracy")]
    shown = ", ".join("-" if value is None else f"{value:.3f}" for value in values)
    judged = classify_set(run.model().to(DEVICE), data.test, data.preprocessing)
    sizes = f"{len(data.train)} + {len(data.validation)} + {len(data.test)}"
    return (
        f"| {name} | {len(data.classes)}, {sizes} | {shown} | {probe_on_test(run, data):.3f} "
        f"| {judged.balanced_accuracy:.3f} | {result['distinct_prototypes']} of {result['prototypes']} "
        f"| {seconds:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "folders", nargs="+", help="folders of classes, and overrides of the recipe: KEY=VALUE"
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    overrides = [text for text in arguments.folders if "=" in text]
    print(HEAD, flush=True)
    for folder in (Path(text) for text in arguments.folders if "=" not in text):
        print(row(folder.name, *trained(folder, arguments.out / folder.name, overrides)), flush=True)


if __name__ == "__main__":
    main()
