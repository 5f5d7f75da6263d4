"""Runs: the training loop, checkpoints, the folder that keeps what a training makes, trackers."""
