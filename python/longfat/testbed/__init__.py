"""Testbeds: emulated networks that stand while somebody works in them, and how others find them."""
