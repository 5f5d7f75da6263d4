"""A page that shows flights live, and lets one push the vehicles and change their conditions.

The page is one file, drawn on a canvas, and needs nothing from the network. (MuJoCo's own web viewer, mujoco.studio,
listens on every network interface without asking who comes; this one is for the same machine alone.)
"""
