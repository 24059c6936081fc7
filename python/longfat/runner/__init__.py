"""Running studies: worlds behind one small contract, a store that survives being killed, and progress."""

from longfat.runner.loading import load_run
from longfat.runner.runner import Interrupted, run_study

__all__ = ["Interrupted", "load_run", "run_study"]
