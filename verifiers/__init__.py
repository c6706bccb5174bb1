"""Deterministic scorers: they compare an answer with a reference, and ask no model."""
