"""The Python API: every function and class is a name of the package `longfat`."""
