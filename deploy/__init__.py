"""From a trained policy to a robot: the bundle, its runtime, and the proofs around it."""
