"""Learning while a robot runs: transitions from the robot, interventions, policies that go back."""
