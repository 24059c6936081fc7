"""Tables, charts, diagrams and reports for terminals, notebooks and HTML pages.

These modules draw what `longfat.analysis` computes.
"""
