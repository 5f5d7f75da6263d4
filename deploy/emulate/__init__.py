"""Emulated robots: each speaks its robot's real bytes, with our plant behind it. For a workstation: they simulate.

robo-rl emulate so101
"""
