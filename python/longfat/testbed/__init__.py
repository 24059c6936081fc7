"""Testbeds: emulated networks with a prompt, which other processes can reach."""
