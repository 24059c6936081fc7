"""Expressions in studies: arithmetic on quantities, keys and metrics, with units."""
