"""The acceleration of free fall, for everything that hovers, rolls or tells its attitude by an accelerometer."""

GRAVITY = 9.81
"""m/s², as MuJoCo's default and the published quadrotor models have it (Förster 2015); standard gravity is 9.80665."""
