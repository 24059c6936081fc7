"""Output for people: tables, progress, summaries."""
