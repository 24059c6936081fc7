"""Drawings of traced trials: charts over time, ladders, data frames."""
