"""Ladder diagrams: an arrow for each packet."""
