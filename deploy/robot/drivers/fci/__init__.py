"""Franka Control Interface (FCI), by franky and libfranka: an impedance at 1 kHz, and the hand."""
