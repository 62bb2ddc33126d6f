"""Is it right, and is it faithful? Classification, AOPC, agreement with the truth, axioms."""
