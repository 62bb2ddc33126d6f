from __future__ import annotations

import pytest

from protopfaith.data import birds
from protopfaith.errors import ProtoPFaithError


def test_every_species_owns_variants_that_no_other_can_have() -> None:
    for species, owned in birds.OWNED.items():
        assert owned
        assert birds.defining_parts(species) == tuple(owned)
        for part, variant in owned.items():
            assert variant not in birds.SHARED[part]
            others = [other.get(part) for name, other in birds.OWNED.items() if name != species]
            assert variant not in others


def test_unknown_species() -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'Great Tukka'"):
        birds.defining_parts("Great Tuka")
