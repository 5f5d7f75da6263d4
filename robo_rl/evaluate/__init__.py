"""What a policy does: success rates with confidence intervals, grids, other simulators, comparisons."""
