"""Commands for image data: prepare, show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protopfaith.cli.app import NamesInHelp, app, say
from protopfaith.cli.checks import check_output_file, check_root
from protopfaith.cli.names import check_dataset_root, one_of
from protopfaith.cli.options import Root, Split
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import nothing_named

if TYPE_CHECKING:
    from PIL.PngImagePlugin import PngInfo

    from protopfaith.data import ImageSet

DataName = Annotated[
    str, typer.Argument(metavar="NAME", callback=one_of("DATASETS"), help="One of: {DATASETS}.")
]

data_app = typer.Typer(no_args_is_help=True, help="Check, prepare and look at image data.")
app.add_typer(data_app, name="data")


@data_app.command("prepare", cls=NamesInHelp)
def data_prepare(
    name: DataName,
    root: Root = None,
    size: Annotated[int | None, typer.Option(min=8, max=4096, help="Training size in pixels.")] = None,
    skip_unreadable: Annotated[
        bool, typer.Option(help="Continue without images that cannot be read.")
    ] = False,
) -> None:
    """Check a data set file by file and build its fast local cache."""
    check_root(root)
    check_dataset_root(name, root)
    from protopfaith.data import prepare

    say(str(prepare(name, root, size, skip_unreadable=skip_unreadable)))


@data_app.command("show", cls=NamesInHelp)
def data_show(
    name: DataName,
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("contact-sheet.png"),
    root: Root = None,
    split: Split = "train",
    size: Annotated[int | None, typer.Option(min=8, max=4096, help="Training size in pixels.")] = None,
    rows: Annotated[int, typer.Option(min=1, max=1000, help="Classes.")] = 8,
    columns: Annotated[int, typer.Option(min=1, max=1000, help="Images of each.")] = 8,
    boxes: Annotated[bool, typer.Option(help="Draw boxes and part locations where known.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Pick images at random.")] = None,
) -> None:
    """Draw a contact sheet of a data set, one class per row."""
    check_root(root)
    check_output_file(out, ".png")
    if out.suffix.lower() != ".png":
        raise ProtoPFaithError(
            f"A contact sheet is a PNG file; give a name that ends in .png, not {out.name}."
        )
    refuse_picture(out)
    check_dataset_root(name, root)
    from protopfaith.data import contact_sheet, load_data
    from protopfaith.writing import atomic

    images = choose_split(load_data(name, root=root, size=size).sets(), split)
    sheet = contact_sheet(images, rows, columns, boxes=boxes, seed=seed)
    with atomic(out) as partial:
        sheet.save(partial, format="PNG", pnginfo=signature())
    say(f"Written to {out}")


SIGNATURE = ("Software", "protopfaith contact sheet")


def signature() -> PngInfo:
    """What our sheets carry, so that they may be overwritten and other pictures not."""
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text(*SIGNATURE)
    return info


def refuse_picture(path: Path) -> None:
    """Raises if there is a picture that is no contact sheet of ours."""
    from PIL import Image

    if not path.is_file():
        return
    try:
        with Image.open(path, formats=("PNG",)) as image:
            ours = getattr(image, "text", {}).get(SIGNATURE[0]) == SIGNATURE[1]
    except (OSError, ValueError, SyntaxError):
        ours = False
    if not ours:
        raise ProtoPFaithError(f"{path} is there already and no contact sheet; give another name as --out.")


def choose_split(sets: dict[str, ImageSet], name: str) -> ImageSet:
    """One of the three sets of a run."""
    if name not in sets:
        raise nothing_named("split", name, sets)
    return sets[name]
