"""Commands that write, prove and sign policy files."""
