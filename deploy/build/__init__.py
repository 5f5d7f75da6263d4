"""From a trained policy to a verified bundle, to C and to firmware."""
