"""From a task to a trained policy. Imports nothing, so that a robot without torch can import the contract."""
