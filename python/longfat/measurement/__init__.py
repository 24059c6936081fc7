"""Measurements of real paths: what to send next, and when enough is known."""
