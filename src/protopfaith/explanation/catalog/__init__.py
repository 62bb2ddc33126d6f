"""What is this prototype? All prototypes of a network, each with its source and what looks like it."""

from protopfaith.explanation.catalog.catalog import (
    Catalog,
    ClassPortrait,
    PrototypePortrait,
    explain_prototypes,
)
from protopfaith.explanation.catalog.distributed import explain_sources

__all__ = ["Catalog", "ClassPortrait", "PrototypePortrait", "explain_prototypes", "explain_sources"]
