"""Whose run it is: files that a run names are read only if the run was made by the same person.

A run says where its images lie. One that comes from a stranger could name any folder, and what is read from
there lands in caches and in reports. So a new run is marked with a keyed hash of the places that it names, by
a secret that only its owner can read. Without a valid mark these places are not read, unless `--root` or
`PROTOPFAITH_TRUSTED_ROOTS` says so.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import uuid
from pathlib import Path
from typing import Any

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import Recipe

TRUSTED = "PROTOPFAITH_TRUSTED_ROOTS"  # folders, as in PATH, that any run may name
BYTES = 32  # of the secret
NO_TABLE = (None, "names", "none")  # what recipes say of groups where that is no file


def state_folder() -> Path:
    """Where the secret is: `$PROTOPFAITH_STATE`, else `protopfaith` in the user's state folder."""
    chosen = os.environ.get("PROTOPFAITH_STATE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "protopfaith"


def new_mark(recipe: Recipe) -> dict[str, str]:
    """What marks a new run as one's own, for its `environment.json`; nothing where no secret can be kept."""
    secret = _secret(make=True)
    if secret is None:
        return {}
    number = uuid.uuid4().hex
    return {"id": number, "mark": _mark(secret, number, recipe)}


def is_own(recipe: Recipe, environment: dict[str, Any]) -> bool:
    """Whether the run was marked here, with the places that its recipe names now."""
    number, mark, secret = environment.get("id"), environment.get("mark"), _secret(make=False)
    if secret is None or not isinstance(number, str) or not isinstance(mark, str):
        return False
    return hmac.compare_digest(mark.encode(errors="replace"), _mark(secret, number, recipe).encode())


def check_paths(
    folder: Path, recipe: Recipe, environment: dict[str, Any], root: Path | str | None = None
) -> None:
    """Raises if files would be read that only a stranger's run names.

    Args:
        folder: the run, for the message
        recipe: its recipe
        environment: what its `environment.json` says
        root: the folder of images that its user gave, if any
    """
    data = recipe.data
    groups = data.options.get("groups") if data.groups is None else data.groups
    table = None if groups in NO_TABLE else str(groups)
    if (data.root is None and table is None) or is_own(recipe, environment):
        return
    if root is None and data.root is not None and not _is_trusted(data.root):
        raise ProtoPFaithError(
            f"{folder} was not made here (or by an earlier version), so the images that it names are not "
            f"read; if you trust it and they are in {shown(data.root)}, give that folder with --root."
        )
    if table is not None and not _is_trusted(table, root):
        raise ProtoPFaithError(
            f"{folder} was not made here, so the table of groups that it names ({shown(table)}) is not read; "
            f"if you trust it, name the table's folder in {TRUSTED}."
        )


def _is_trusted(path: str, root: Path | str | None = None) -> bool:
    """Whether a path lies below a folder that the user named."""
    named = [name for name in os.environ.get(TRUSTED, "").split(os.pathsep) if name]
    if root is not None:
        named.append(str(root))
    try:
        place = Path(path).expanduser().resolve()
        return any(place.is_relative_to(Path(name).expanduser().resolve()) for name in named)
    except (OSError, RuntimeError, ValueError):  # a link to itself, a name that is none
        return False


def _mark(secret: bytes, number: str, recipe: Recipe) -> str:
    data = recipe.data
    places = json.dumps(
        [number, data.name, data.root, data.groups, data.options], sort_keys=True, default=str
    )
    return hmac.new(secret, places.encode(), hashlib.sha256).hexdigest()


def _secret(*, make: bool) -> bytes | None:
    """The user's own, made when it is first needed; None where there is none."""
    path = state_folder() / "secret"
    try:
        if make and not path.is_file():
            _write_secret(path)
        text = path.read_text(encoding="ascii").strip()
        secret = bytes.fromhex(text)
    except (OSError, ValueError):
        return None
    return secret if len(secret) == BYTES else None


def _write_secret(path: Path) -> None:
    """Readable by its owner alone; whole before it has its name, and the first one stays."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(BYTES))
        try:
            os.link(partial, path)
        except FileExistsError:  # another process was faster
            pass
        except OSError:  # a file system without links
            partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
