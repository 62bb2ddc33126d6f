from __future__ import annotations

import re

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
