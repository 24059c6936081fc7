"""Running studies: planning, calls of worlds, a store that survives being killed, and progress."""

from longfat.runner.loading import Measured, load
from longfat.runner.runner import Interrupted, run_study

__all__ = ["Interrupted", "Measured", "load", "run_study"]
