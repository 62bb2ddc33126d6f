"""The pages as Jinja templates."""
