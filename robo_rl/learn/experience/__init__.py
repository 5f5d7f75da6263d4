"""What algorithms learn from: environments seen by a policy, rollouts, demonstrations, reset states."""
