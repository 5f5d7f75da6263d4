"""Electric motors as differentiable, batched functions of one control period."""
