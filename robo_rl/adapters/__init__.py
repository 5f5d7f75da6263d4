"""Other libraries' interfaces: gymnasium, stable-baselines3, rsl_rl, any torch module, data sets."""
