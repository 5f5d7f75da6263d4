"""Pages in the browser: robots live, which one can push and command (``page``), and the panel of a robot (``server``).

Nothing is fetched from the network, and who may look and act is decided in one place (``access``): this machine alone,
unless a token guards a page. (MuJoCo's own web viewer, mujoco.studio, listens on every network interface without asking
who comes.)
"""
