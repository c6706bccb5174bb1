"""The shared vocabulary: rollouts, verdicts, scorers, recipes, and the engine that brings them together."""
