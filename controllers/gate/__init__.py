"""The safety gate between a policy and the actuators: what it checks, its states, its own moves."""
