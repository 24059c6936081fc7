"""The result of a run: tables, verdicts, notes, charts and reports."""
