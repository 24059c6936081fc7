"""The report of a run, section by section."""
