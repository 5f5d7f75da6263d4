"""Simulation: plants, robots, sensors, randomization and the tasks that are made of them."""
