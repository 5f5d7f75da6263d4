"""Commands that train policies, and say why one does not learn."""
