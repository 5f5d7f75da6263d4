"""Crazyflies over CRTP, by Bitcraze's cflib."""
