"""`protopfaith convert`: networks of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protopfaith.arguments import named
from protopfaith.cli.app import app, next_command, note, say
from protopfaith.cli.checks import check_file, check_image, check_output_folder, check_root
from protopfaith.cli.names import one_of
from protopfaith.cli.options import Device
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, is_folder

Foreign = Annotated[
    Path, typer.Argument(help="A .pth file of the original ProtoPNet, or a directory of CaBRNet.")
]
Format = Annotated[
    str | None, typer.Option(callback=one_of("FORMATS"), help="protopnet or cabrnet; recognized by default.")
]
Root = Annotated[
    Path | None,
    typer.Option(
        help="The folder of its images, which gives the classes' names and the prototypes' sources."
    ),
]
Data = Annotated[str, typer.Option(callback=one_of("DATASETS"), help="The data set in that folder.")]
Classes = Annotated[Path | None, typer.Option(help="A text file with the name of one class on each line.")]
Boxes = Annotated[
    Path | None,
    typer.Option(help="The original ProtoPNet's bb*.npy, which names the image of each prototype."),
]
Similarity = Annotated[
    str | None,
    typer.Option(callback=one_of("SIMILARITIES"), help="log or linear, where the file does not say."),
]
Epsilon = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Epsilon of the log similarity, where the file does not say."),
]
Size = Annotated[
    int | None, typer.Option(min=1, max=100_000, help="Size of its images, where the file does not say.")
]
Encoder = Annotated[
    str | None,
    typer.Option(
        help="Where its encoder ends or has its strides, where the file does not say: vgg16@features.29 (no "
        "last pooling), resnet50_v1."
    ),
]


@app.command()
def convert(
    path: Foreign,
    out: Annotated[Path, typer.Option(help="The folder of the new run.")],
    format: Format = None,
    root: Root = None,
    data: Data = "folder",
    classes: Classes = None,
    boxes: Boxes = None,
    similarity: Similarity = None,
    epsilon: Epsilon = None,
    size: Size = None,
    encoder: Encoder = None,
    image: Annotated[Path | None, typer.Option(help="An image to check the converted network on.")] = None,
    device: Device = "auto",
) -> None:
    """Turn a prototype network trained with another program into a run."""
    if not is_file(path) and not is_folder(path):
        raise ProtoPFaithError(
            f"There is nothing at {named(path)}; give a .pth file, or a directory of CaBRNet."
        )
    check_root(root)
    check_file(classes, "text file of classes")
    check_file(boxes, "file of boxes")
    check_image(image)
    check_output_folder(out, path)
    note(f"Reading {path} ...")
    from protopfaith.conversion import convert as convert_network

    found = convert_network(
        path,
        out,
        format=format,
        root=root,
        data=data,
        classes=classes,
        boxes=boxes,
        similarity=similarity,
        epsilon=epsilon,
        size=size,
        encoder=encoder,
        image=image,
        device=device,
    )
    for line in found.lines():
        say(line)
    option = [] if found.sources else ["--no-sources"]  # which explain would ask for
    again = next_command("explain", found.run.folder, "IMAGE", *option)
    say(f"The run is in {found.run.folder}; next: {again}")
