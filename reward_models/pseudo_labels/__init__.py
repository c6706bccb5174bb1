"""Labels made from the rollouts themselves, where there is no reference."""
