"""``fuse``: a torch function of one environment's numbers becomes one native loop over all environments.

A control step of a simulated robot is some hundred small arithmetic operations. Run one by one on a batch,
each reads and writes memory and pays a call; a general compiler spends a minute on them. ``fuse`` runs the
function once on symbols, which gives a graph of scalar expressions, and turns it into a C++ loop, in about
a second the first time and at once from then on. Its gradient is a second such loop, which recomputes what
it needs, so nothing is kept between forward and backward.

    @fuse
    def step(state, command, parameters): ...      # (n, …) tensors, in tuples or dictionaries
    state = step(state, command, parameters)       # differentiable, on CPU

Every tensor has the environments first: (n, …), or (1, …) where one value serves all of them. The function
may use arithmetic, comparisons, torch.where, and the functions in ``robo_rl.sim.accelerate.fuse.symbol``;
environments can't see
each other. On other devices than the CPU, torch.compile does the work.
"""

from robo_rl.sim.accelerate.fuse.call import Fused, fuse
from robo_rl.sim.accelerate.fuse.random import normal_uniforms, normals, streams, uniforms
from robo_rl.sim.accelerate.fuse.structure import blocks_like, empty_block, spaced

__all__ = ["Fused", "blocks_like", "empty_block", "fuse", "normal_uniforms", "normals", "spaced", "streams", "uniforms"]
