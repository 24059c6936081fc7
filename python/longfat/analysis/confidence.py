"""The confidence level of intervals."""

CONFIDENCE = 0.95
"""The confidence level of every interval."""
