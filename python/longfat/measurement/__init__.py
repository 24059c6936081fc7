"""Measurements of real paths: which probes to send, and when to stop."""
