"""Results of measurements: texts, tables, charts and pages."""
