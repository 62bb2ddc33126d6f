"""What people look at: figures, reports, pages, notebooks. Renderers take results, which do not know them."""

from protopfaith.show.notebook import ShownAttribution

__all__ = ["ShownAttribution"]
