"""One training on several processes, and sweeps on several computers."""
