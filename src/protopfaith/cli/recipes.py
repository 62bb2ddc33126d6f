"""`protopfaith recipes`: the recipes in the package, and what their keys mean."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from protopfaith.cli.app import app, console, say
from protopfaith.cli.checks import check_recipe

recipes_app = typer.Typer(help="List the recipes in the package, or show one with the meaning of every key.")
app.add_typer(recipes_app, name="recipes")


@recipes_app.callback(invoke_without_command=True)
def recipes(context: typer.Context) -> None:
    """List the recipes in the package, with what each is for."""
    if context.invoked_subcommand is not None:
        return
    from protopfaith.training import recipe_names
    from protopfaith.training.recipe import recipe_summary

    table = Table.grid(padding=(0, 2))
    for name in recipe_names():
        table.add_row(Text(name), Text(recipe_summary(name)))
    console.print(table, highlight=False)


@recipes_app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A recipe by name, or a YAML file.")],
) -> None:
    """Print a recipe, complete, with the meaning of every key; a start for one of your own."""
    check_recipe(name)
    from protopfaith.training import load_recipe
    from protopfaith.training.meanings import explained_recipe

    say(explained_recipe(load_recipe(name)))
