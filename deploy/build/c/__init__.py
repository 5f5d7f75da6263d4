"""From a bundle to C99: the whole policy, from signals to commands, as two files without heap and without libraries.

``generate`` is the one entry point. A bundle's graph becomes a ``Program`` (lower.py), whose buffers get a place in
the arena (plan.py), and which is then written as C (emit.py) beside the kernels that it calls (kernels/).
"""
