"""Commands that run a policy on a robot, or on an emulated one."""
