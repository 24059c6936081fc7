"""What the kernel of this machine offers, and what it can be given."""
