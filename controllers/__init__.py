"""Classical control, and the rotations that it and the simulation share. Needs numpy alone."""
