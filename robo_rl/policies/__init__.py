"""Policies by what they are called: a run, a bundle, a controller; evaluated over grids; fetched from addresses."""
