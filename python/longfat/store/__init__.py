"""Records on disk and on object storage."""
