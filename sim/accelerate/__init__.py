"""Compiled speed: steps and resets traced into native loops, held to the plain ones by tests."""
