"""Many trainings: what a sweep file says, its jobs, who decides what is trained next, and engines that run them."""
