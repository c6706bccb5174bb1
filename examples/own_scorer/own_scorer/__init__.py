"""Scorers for Rewarden in a package of their own: a gate, a group scorer that follows another, and a remote one."""
