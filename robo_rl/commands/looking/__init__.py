"""Commands that show and measure what a policy does."""
