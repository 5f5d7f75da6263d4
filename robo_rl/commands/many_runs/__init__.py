"""Commands for many trainings: sweeps, comparisons, speed."""
