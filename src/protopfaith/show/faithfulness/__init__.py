"""What a judgment of explainers shows: tables, figures and a page."""
