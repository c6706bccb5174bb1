"""Scorers that ask a model, or compare the members of a group with each other."""
