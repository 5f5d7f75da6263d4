"""Tasks of legged robots: walking on flat and on rough ground, and getting up."""
