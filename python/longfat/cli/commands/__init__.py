"""The commands of `longfat`, one module each."""
