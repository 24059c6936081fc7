"""Results of a run: cells, intervals, verdicts, records and data frames."""
