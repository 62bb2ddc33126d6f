"""`protopfaith recipes`: what can be trained as it is."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from protopfaith.cli.app import app, console


@app.command()
def recipes() -> None:
    """List the recipes in the package, with what each is for."""
    from protopfaith.training import recipe_names
    from protopfaith.training.recipe import recipe_summary

    table = Table.grid(padding=(0, 2))
    for name in recipe_names():
        table.add_row(Text(name), Text(recipe_summary(name)))
    console.print(table, highlight=False)
