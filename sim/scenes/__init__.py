"""Surroundings: terrain, rooms, tracks, lanes."""
