"""Properties of a path's links, inferred from round trips to its routers."""
