"""Plants of omnidirectional bases."""
