from __future__ import annotations

import re
from dataclasses import replace

import pytest

from protopfaith.explanation import Catalog, Explainer, explain_prototypes
from protopfaith.show.catalog import render_catalog


@pytest.fixture(scope="module")
def catalog(explainer: Explainer) -> Catalog:
    return explain_prototypes(explainer, players=24, budget=64, nearest=3)


def test_every_prototype_and_class_is_on_the_page(catalog: Catalog) -> None:
    page = render_catalog(catalog)
    for one in catalog.prototypes:
        assert f"<h3>Prototype {one.prototype}</h3>" in page
    for portrait in catalog.classes:
        assert page.count(f"<h2>{portrait.name}</h2>") == 1
    assert not re.search(r"https?://|//[a-z]+\.", page)
    assert page.count("<article") == len(catalog.prototypes)
    assert "the frame is where they are near" in page


def test_distances_are_never_written_as_powers_of_ten(catalog: Catalog) -> None:
    first = catalog.prototypes[0]
    near = replace(first, nearest=tuple(replace(patch, distance=2.4e-5) for patch in first.nearest))
    page = render_catalog(replace(catalog, prototypes=(near, *catalog.prototypes[1:])))
    assert "distance below 0.001" in page
    assert "distance 2.4e-05" not in page


def test_that_every_prototype_is_used_is_said_in_words(catalog: Catalog) -> None:
    used = replace(catalog, prototypes=tuple(replace(one, uses=3) for one in catalog.prototypes))
    assert "each is used by some image besides its source" in render_catalog(used)


def test_prototypes_that_only_resemble_their_image_say_so(catalog: Catalog) -> None:
    assert "resemble" not in render_catalog(catalog)
    first, *others = catalog.prototypes
    alike = replace(first, source=replace(first.source, exact=False))
    page = render_catalog(replace(catalog, prototypes=(alike, *others)))
    assert f"1 of the {len(catalog.prototypes)} prototypes are no part of any training image" in page
    assert page.count("only resembles this image") == 1
    assert page.count("nearest training image</figcaption>") == 1
    assert f"Nearest to it is a part of {first.source.image};" in page
