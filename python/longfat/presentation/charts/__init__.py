"""Vega-Lite specifications: their parts, style and files."""
