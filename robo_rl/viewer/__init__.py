"""Pages in the browser: robots live, which one can push and steer, and the panel of a robot (see ``server``).

Each page is one file, drawn on a canvas, and needs nothing from the network. (MuJoCo's own web viewer, mujoco.studio,
listens on every network interface without asking who comes. These are for the same machine, unless a token guards
them.)
"""
