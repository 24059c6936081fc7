"""Explanations of captures: what limited a connection, what its path is, and who sent."""
