"""Worlds: what runs a trial. Without imports, so that the processes of a trial start quickly."""
