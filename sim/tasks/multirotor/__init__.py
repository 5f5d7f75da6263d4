"""Tasks of multirotors."""
