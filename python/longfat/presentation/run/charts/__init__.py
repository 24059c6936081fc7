"""Charts of a run's metrics."""
