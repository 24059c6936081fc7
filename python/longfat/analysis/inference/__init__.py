"""What round trips to the routers of a path say of its links."""
