"""Captures of transfers whose cause is known, for the benchmarks of `longfat explain`."""
