"""`protopfaith encoders`: which encoders there are."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from protopfaith.cli.app import app, console, say


@app.command()
def encoders() -> None:
    """List the encoders: ours, torchvision's, and how to use timm's."""
    from protopfaith.network import ENCODERS
    from protopfaith.network.encoders.libraries import torchvision_names

    say("Ours (model.encoder=NAME):")
    table = Table.grid(padding=(0, 2))
    for name, build in ENCODERS.items():
        summary = (build.__doc__ or "").split(". ")[0]
        table.add_row(Text(f"  {name}"), Text(" ".join(summary.split())))
    console.print(table, highlight=False)
    say("\nTorchvision's, by their names there (model.weights=imagenet for published weights):")
    say("  " + ", ".join(sorted(torchvision_names())))
    say(
        "\nTimm's as timm:NAME (model.encoder=timm:convnext_tiny), after pip install 'protopfaith[timm]'; "
        "their names: python -c 'import timm; print(timm.list_models())'"
    )
