"""Values of options and arguments, parsed and checked."""
